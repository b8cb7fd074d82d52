"""Speed of COPY FROM STDIN: `copy_speed.py PG_PORT [ROWS [ROUNDS]]`, against a running server.

5 columns (timestamp, 2 symbols, 2 doubles) as text, CSV and binary, sent by psycopg in
64 KiB chunks prepared beforehand. Runs in turn; shows the median, slowest and fastest.
"""
import datetime
import statistics
import struct
import sys
import time

import psycopg

pg = sys.argv[1]
rows = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
PIECE = 64 * 1024
START = datetime.datetime(2024, 1, 1)
EPOCH = datetime.datetime(2000, 1, 1)
OPTIONS = {'text': '', 'csv': 'WITH (FORMAT csv)', 'binary': 'WITH (FORMAT binary)'}


def values():
    for row in range(rows):
        side = 'buy' if row % 2 else 'sell'
        yield row * 100_000, f's{row % 97}', side, 100 + row % 10_007 / 100, row % 7_919 / 1_000


def lines(separator):
    def line(micros, *others):
        at = (START + datetime.timedelta(microseconds=micros)).strftime('%Y-%m-%d %H:%M:%S.%f')
        return separator.join([at, *map(str, others)])

    return ('\n'.join(line(*one) for one in values()) + '\n').encode()


def binary():
    start = (START - EPOCH) // datetime.timedelta(microseconds=1)
    data = bytearray(b'PGCOPY\n\xff\r\n\0' + struct.pack('>ii', 0, 0))
    for micros, symbol, side, price, amount in values():
        data += struct.pack('>hiqi', 5, 8, start + micros, len(symbol)) + symbol.encode()
        data += struct.pack('>i', len(side)) + side.encode()
        data += struct.pack('>idid', 8, price, 8, amount)
    return bytes(data + struct.pack('>h', -1))


bodies = {'text': lines('\t'), 'csv': lines(','), 'binary': binary()}
rates = {name: [] for name in bodies}
place = f'host=127.0.0.1 port={pg} user=admin password=quest dbname=qdb'
with psycopg.connect(place, autocommit=True) as connection:
    for _ in range(rounds):
        for name, body in bodies.items():
            connection.execute('DROP TABLE IF EXISTS copy_speed')
            connection.execute(
                'CREATE TABLE copy_speed (ts TIMESTAMP, symbol SYMBOL, side SYMBOL, '
                'price DOUBLE, amount DOUBLE) TIMESTAMP(ts) PARTITION BY DAY'
            )
            began = time.perf_counter()
            statement = f'COPY copy_speed FROM STDIN {OPTIONS[name]}'
            with connection.cursor().copy(statement) as copy:
                for at in range(0, len(body), PIECE):
                    copy.write(body[at : at + PIECE])
            rates[name].append(rows / (time.perf_counter() - began) / 1e6)
            (found,) = connection.execute('SELECT count() FROM copy_speed').fetchone()
            assert found == rows, found
for name, found in rates.items():
    print(f'{name}: {statistics.median(found):.2f} M rows/s ({min(found):.2f} to {max(found):.2f})')
