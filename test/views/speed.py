"""What keeping a materialized view current costs, and how fresh it is.

`speed.py HTTP_PORT PG_PORT [ROWS [ROUNDS]]` against one server that runs; the official client of
Python sends Arrow. The view has candles of a minute for each of 1,000 symbols; the rows' times are
a microsecond apart, so that a minute has 60 M of them.
"""
import statistics
import sys
import time

import numpy
import psycopg
import pyarrow
import questdb

http, pg = sys.argv[1], sys.argv[2]
rows = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000_000
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
PART = 500_000
random = numpy.random.default_rng(1)
base = 1_700_000_000_000_000
NAMES = pyarrow.array([f's{number}' for number in range(1_000)])
QUERY = """SELECT timestamp, sym, first(price) open, max(price) high, min(price) low, last(price) close
  FROM ticks SAMPLE BY 1m"""

connection = psycopg.connect(f'host=127.0.0.1 port={pg} user=admin password=quest', autocommit=True)


def part(start, count):
    series = random.integers(0, 1_000, count).astype('int32')
    micros = base + numpy.arange(start, start + count)
    return pyarrow.table({
        'sym': pyarrow.DictionaryArray.from_arrays(series, NAMES),
        'price': random.random(count) * 1_000,
        'at': pyarrow.array(micros, pyarrow.timestamp('us')),
    })


def begin(view):
    connection.execute('DROP MATERIALIZED VIEW IF EXISTS candles')
    connection.execute('DROP TABLE IF EXISTS ticks')
    connection.execute("""CREATE TABLE ticks (timestamp TIMESTAMP, sym SYMBOL, price DOUBLE)
      TIMESTAMP(timestamp) PARTITION BY DAY""")
    if view:
        connection.execute(f'CREATE MATERIALIZED VIEW candles AS ({QUERY})')


def is_current():
    answer = connection.execute("""SELECT refresh_base_table_txn = base_table_txn
      FROM materialized_views() WHERE view_name = 'candles'""").fetchone()
    return answer is not None and answer[0] is True


def wait():
    started = time.perf_counter()
    while not is_current():
        time.sleep(0.001)
    return time.perf_counter() - started


parts = [part(start, min(PART, rows - start)) for start in range(0, rows, PART)]
rates = {False: [], True: []}
behind, refreshes = [], []
for _ in range(rounds):
    for view in (False, True):
        begin(view)
        started = time.perf_counter()
        with questdb.connect(f'ws::addr=127.0.0.1:{http};') as db:
            for table in parts:
                db.dataframe(table, table_name='ticks', symbols=['sym'], at='at')
        rates[view].append(rows / (time.perf_counter() - started) / 1e6)
        if view:
            behind.append(wait())
            answer = connection.execute("SELECT runs FROM jobs() WHERE name = 'candles'").fetchone()
            refreshes.append(answer[0])
without, kept = statistics.median(rates[False]), statistics.median(rates[True])
print(f'rows in without a view: {without:.2f} M rows/s, with one {kept:.2f}: {kept / without:.2f} times')
print(f'the view is current {max(behind) * 1e3:.0f} ms after the last row, {refreshes} refreshes')

fresh = []
for number in range(200):
    at = base + rows + 60_000_000 * (number + 1)
    connection.execute(f"INSERT INTO ticks VALUES ({at}, 's1', 1.0)")
    fresh.append(wait())
fresh.sort()
print(f'one row: shown after {fresh[100] * 1e3:.0f} ms, of 100 rows 99 within {fresh[197] * 1e3:.0f} ms')

late = []
for number in range(20):
    minute = 60_000_000
    values = ', '.join(
        f"({base + rows + (number * 10 + bucket + 1) * minute + 5}, 's2', 2.0)" for bucket in range(10)
    )
    connection.execute(f'INSERT INTO ticks VALUES {values}')
    late.append(wait())
print(f'10 buckets of late rows: current after {statistics.median(late) * 1e3:.0f} ms')

started = time.perf_counter()
connection.execute(f'SELECT count() FROM ({QUERY})').fetchall()
query = time.perf_counter() - started
connection.execute('REFRESH MATERIALIZED VIEW candles FULL')
time.sleep(query * 3 + 0.5)
taken = connection.execute(
    "SELECT last_micros FROM jobs() WHERE name = 'candles'"
).fetchone()[0]
print(f'a full refresh: {taken / 1e6:.2f} s, the query alone {query:.2f} s')
begin(False)
connection.execute('DROP TABLE ticks')
