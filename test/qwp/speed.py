"""Writes rows and reads results over the columnar protocol, compared with lines over HTTP and COPY.

`speed.py HTTP_PORT PG_PORT [ROWS [ROUNDS]]`, in turn against one running server, with the official
Python client. Writes an Arrow table with 8 columns, 2 symbols and 1,000 series until it is
acknowledged; lines are the same rows from a pandas frame. Reads 5 columns into an Arrow table, and
the same rows with psycopg's binary COPY, undecoded.
"""
import statistics
import sys
import time

import numpy
import pandas
import psycopg
import pyarrow
import questdb
from questdb.ingress import Sender

http, pg = sys.argv[1], sys.argv[2]
rows = int(sys.argv[3]) if len(sys.argv) > 3 else 5_000_000
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
random = numpy.random.default_rng(1)
series = random.integers(0, 1_000, rows)
prices = random.random(rows) * 1_000
base = 1_700_000_000_000_000


def table(late):
    """Returns an Arrow table. With `late`, one row in twenty is up to a minute early."""
    micros = base + numpy.arange(rows) * 1_000
    if late:
        places = random.choice(rows, rows // 20, replace=False)
        micros[places] -= random.integers(1, 60_000_000, rows // 20)
    names = pyarrow.array([f's{number}' for number in range(1_000)])
    sides = pyarrow.array(['buy', 'sell'])
    return pyarrow.table({
        'sym': pyarrow.DictionaryArray.from_arrays(series.astype('int32'), names),
        'side': pyarrow.DictionaryArray.from_arrays((series % 2).astype('int32'), sides),
        'price': prices,
        'amount': prices / 7,
        'bid': prices - 1,
        'qty': series,
        'venue': series % 50,
        'at': pyarrow.array(micros, pyarrow.timestamp('us')),
    })


def timed(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def note(name, seconds, count=rows):
    rates = sorted(count / one / 1e6 for one in seconds)
    print(f'{name}: {statistics.median(rates):.2f} M rows/s ({rates[0]:.2f} to {rates[-1]:.2f})')


def columns(frame):
    with questdb.connect(f'ws::addr=127.0.0.1:{http};') as db:
        db.dataframe(frame, table_name='speed', symbols=['sym', 'side'], at='at')


def lines(frame):
    with Sender.from_conf(f'http::addr=127.0.0.1:{http};') as sender:
        sender.dataframe(frame, table_name='speed', symbols=['sym', 'side'], at='at')


connection = psycopg.connect(f'host=127.0.0.1 port={pg} user=admin password=quest', autocommit=True)


def again():
    connection.execute('DROP TABLE IF EXISTS speed')


ordered, late = table(False), table(True)
part = ordered.slice(0, max(rows // 10, 1))
frame = part.to_pandas()
seen = {'columns': [], 'late': [], 'lines': []}
for _ in range(rounds):
    again()
    seen['columns'].append(timed(lambda: columns(ordered)))
    again()
    seen['late'].append(timed(lambda: columns(late)))
    again()
    seen['lines'].append(timed(lambda: lines(frame)))
note('rows in, Arrow', seen['columns'])
note('rows in, Arrow, 5 % late', seen['late'])
note('rows in, lines over HTTP', seen['lines'], part.num_rows)

again()
columns(ordered)
columns(ordered)
query = 'SELECT timestamp, sym, price, qty, venue FROM speed'
count = 2 * rows
read = {'arrow': [], 'copy': [], 'first': []}


def arrow():
    with questdb.connect(f'ws::addr=127.0.0.1:{http};') as db:
        assert db.query(query).to_arrow().num_rows == count


def copy():
    with connection.cursor().copy(f'COPY ({query}) TO STDOUT BINARY') as out:
        for _ in out:
            pass


def first():
    with questdb.connect(f'ws::addr=127.0.0.1:{http};') as db:
        started = time.perf_counter()
        for _ in db.query(query).iter_arrow():
            return time.perf_counter() - started


for _ in range(rounds):
    read['arrow'].append(timed(arrow))
    read['copy'].append(timed(copy))
note('results, Arrow table', read['arrow'], count)
note('results, binary COPY', read['copy'], count)
for _ in range(20):
    read['first'].append(first())
median, most = statistics.median(read['first']) * 1e3, max(read['first']) * 1e3
print(f'first batch: {median:.1f} ms, most {most:.1f} ms')
again()
