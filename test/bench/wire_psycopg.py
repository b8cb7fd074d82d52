"""`wire_psycopg.py PORT DATABASE QUERY`: seconds to fetch all rows in binary format, and their number."""
import sys
import time

import psycopg

port, database, query = sys.argv[1:]
address = f'host=127.0.0.1 port={port} user=admin password=quest dbname={database}'
with psycopg.connect(address, autocommit=True) as connection:
    with connection.cursor(binary=True) as cursor:
        started = time.perf_counter()
        cursor.execute(query)
        rows = cursor.fetchall()
        print(time.perf_counter() - started, len(rows))
