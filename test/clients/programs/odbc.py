"""psqlodbc under unixODBC, driven by pyodbc: `odbc.py PORT`.

Prints one line of JSON with the result or error of each check.
"""
import datetime
import decimal
import json
import sys
import uuid

import pyodbc

WHERE = (
    f'DRIVER={{PostgreSQL Unicode}};SERVER=127.0.0.1;PORT={sys.argv[1]};DATABASE=qdb;'
    'UID=admin;PWD=quest'
)
WHEN = datetime.datetime(2024, 1, 1, 0, 0, 0, 7)
VALUES = [
    WHEN, True, -7, 123456, 2**53 + 1, 1.5, -2.25, "it's \u00e9", uuid.UUID(int=5),
    decimal.Decimal('12.500'),
]
TYPES = (
    'at TIMESTAMP NOT NULL, b BOOLEAN, h SMALLINT, i INTEGER, l BIGINT, f REAL, '
    'd DOUBLE PRECISION, v VARCHAR(40), u UUID, n NUMERIC(18,3)'
)
INSERT = f"INSERT INTO od_all VALUES ({', '.join('?' * len(VALUES))})"
seen = {}


def check(work):
    """Runs a check immediately, under its function's name."""
    try:
        seen[work.__name__] = work()
    except Exception as error:  # Later checks run even if this one fails.
        seen[work.__name__] = f'{type(error).__name__}: {error}'


def texts(rows):
    return [[str(cell) for cell in row] for row in rows]


def columns(rows, *names):
    """Returns the columns of descriptive rows that are the same on every server."""
    return [' '.join(str(getattr(row, name)) for name in names) for row in rows]


connection = pyodbc.connect(WHERE, autocommit=True)
cursor = connection.cursor()


@check
def create():
    cursor.execute(f'CREATE TABLE od_all ({TYPES}, PRIMARY KEY (at, i))')
    cursor.execute('CREATE TABLE od_rows (id INTEGER, name VARCHAR(20), value DOUBLE PRECISION)')
    cursor.execute('CREATE VIEW od_view AS SELECT id, name FROM od_rows')
    return True


@check
def about_the_server():
    return [connection.getinfo(pyodbc.SQL_DBMS_NAME), connection.getinfo(pyodbc.SQL_DATABASE_NAME)]


@check
def insert_with_parameters():
    return cursor.execute(INSERT, VALUES).rowcount


@check
def insert_nulls():
    return cursor.execute(INSERT, [WHEN, True, 2, 3, *[None] * 6]).rowcount


@check
def every_type():
    row = cursor.execute('SELECT * FROM od_all WHERE i = ?', 123456).fetchone()
    return [[type(cell).__name__, str(cell)] for cell in row]


@check
def every_null():
    row = cursor.execute('SELECT * FROM od_all WHERE i = ?', 3).fetchone()
    return [cell is None for cell in row]


@check
def described():
    cursor.execute('SELECT * FROM od_all WHERE 1 = 0')
    return [f'{name} {kind.__name__} {size} {scale}'
            for name, kind, _, _, size, scale, _ in cursor.description]


@check
def parameters_of_every_type():
    found = []
    for name, value in zip(['at', 'b', 'h', 'i', 'l', 'f', 'd', 'v', 'u', 'n'], VALUES):
        count = cursor.execute(f'SELECT count(*) FROM od_all WHERE {name} = ?', value).fetchval()
        found.append(f'{name} {count}')
    return found


@check
def parameters_that_decide():
    question = 'SELECT ? + 1, CAST(? AS VARCHAR), CAST(? AS TIMESTAMP), coalesce(?, 7)'
    return texts(cursor.execute(question, 2, 'a', WHEN, None).fetchall())


@check
def executemany():
    rows = [(n, f'name {n}', n / 2) for n in range(1000)]
    cursor.executemany('INSERT INTO od_rows VALUES (?, ?, ?)', rows)
    return texts(cursor.execute('SELECT count(*), sum(value) FROM od_rows').fetchall())


@check
def executemany_of_arrays():
    cursor.fast_executemany = True
    rows = [(n, f'name {n}', None if n % 2 else 0.5) for n in range(1000, 2000)]
    cursor.executemany('INSERT INTO od_rows VALUES (?, ?, ?)', rows)
    cursor.fast_executemany = False
    return texts(cursor.execute('SELECT count(*), count(value) FROM od_rows').fetchall())


@check
def many_rows():
    cursor.execute('SELECT id FROM od_rows ORDER BY id')
    pages = []
    while page := cursor.fetchmany(900):
        pages.append(len(page))
    return pages


@check
def declare_fetch():
    with pyodbc.connect(f'{WHERE};UseDeclareFetch=1;Fetch=300', autocommit=False) as other:
        rows = other.cursor().execute('SELECT id FROM od_rows WHERE id < ?', 1500).fetchall()
        return len(rows)


@check
def prepares_of_the_server():
    with pyodbc.connect(f'{WHERE};UseServerSidePrepare=1;ByteaAsLongVarBinary=1') as other:
        k = other.cursor()
        question = 'SELECT name FROM od_rows WHERE id = ?'
        return [k.execute(question, n).fetchval() for n in (1, 2, 3)]


@check
def prepares_of_the_driver():
    with pyodbc.connect(f'{WHERE};UseServerSidePrepare=0') as other:
        k = other.cursor()
        k.execute('SELECT name, ? FROM od_rows WHERE id = ? AND value > ?', "it's", 3, 0.5)
        return texts(k.fetchall())


@check
def tables():
    rows = cursor.tables(table='od_%').fetchall()
    return sorted(columns(rows, 'table_schem', 'table_name', 'table_type'))


@check
def tables_of_a_type():
    return columns(cursor.tables(table='od_%', tableType='VIEW').fetchall(), 'table_name')


@check
def schemas_and_catalogs():
    return [
        'public' in [row.table_schem for row in cursor.tables(schema='%', table='', catalog='')],
        'qdb' in [row.table_cat for row in cursor.tables(catalog='%', schema='', table='')],
    ]


@check
def columns_of_a_table():
    rows = cursor.columns(table='od_all').fetchall()
    names = ('column_name', 'data_type', 'type_name', 'nullable', 'ordinal_position')
    return columns(rows, *names)


@check
def columns_of_a_view():
    return columns(cursor.columns(table='od_view').fetchall(), 'column_name', 'type_name')


@check
def primary_keys():
    return columns(cursor.primaryKeys('od_all').fetchall(), 'column_name', 'key_seq')


@check
def foreign_keys():
    return columns(cursor.foreignKeys(table='od_all').fetchall(), 'fkcolumn_name')


@check
def statistics():
    rows = cursor.statistics('od_all').fetchall()
    return [row.column_name for row in rows if row.column_name is not None]


@check
def row_id_columns():
    return columns(cursor.rowIdColumns('od_rows').fetchall(), 'column_name')


@check
def procedures():
    return len(cursor.procedures(procedure='od_none').fetchall())


@check
def type_info():
    names = [row.type_name for row in cursor.getTypeInfo().fetchall()]
    return [name in names for name in ('int4', 'float8', 'varchar', 'numeric', 'uuid', 'bool')]


@check
def rolled_back():
    with pyodbc.connect(WHERE, autocommit=False) as block:
        k = block.cursor()
        k.execute("INSERT INTO od_rows VALUES (-1, 'gone', 1)")
        own = k.execute('SELECT count(*) FROM od_rows WHERE id = -1').fetchval()
        block.rollback()
        return [own, k.execute('SELECT count(*) FROM od_rows WHERE id = -1').fetchval()]


@check
def committed():
    with pyodbc.connect(WHERE, autocommit=False) as block:
        block.cursor().execute("INSERT INTO od_rows VALUES (-2, 'kept', 1)")
        block.commit()
    return cursor.execute('SELECT count(*) FROM od_rows WHERE id = -2').fetchval()


@check
def error_in_a_block():
    with pyodbc.connect(WHERE, autocommit=False) as block:
        k = block.cursor()
        k.execute("INSERT INTO od_rows VALUES (-3, 'kept', 1)")
        try:
            k.execute('SELECT * FROM nowhere')
        except pyodbc.Error as error:
            state = error.args[0]
        block.rollback()
        return [state, k.execute('SELECT count(*) FROM od_rows WHERE id = -3').fetchval()]


@check
def errors():
    states = []
    for text in ('SELECT nope FROM od_rows', 'SELECT * FROM nowhere', 'SELECT FRUM x, y z w'):
        try:
            cursor.execute(text)
        except pyodbc.Error as error:
            states.append(error.args[0])
    return states


@check
def update_and_delete():
    cursor.execute('UPDATE od_rows SET name = ? WHERE id = ?', 'changed', 5)
    changed = cursor.rowcount
    cursor.execute('DELETE FROM od_rows WHERE id >= ?', 1990)
    return [changed, cursor.rowcount]


@check
def escapes_of_odbc():
    question = (
        "SELECT {fn ucase('a')}, {fn length('abc')}, {d '2024-01-02'}, {ts '2024-01-02 03:04:05'}"
    )
    return texts(cursor.execute(question).fetchall())


@check
def functions_of_odbc():
    calls = [
        "substring('abcdef', 2, 3)", "octet_length('n\u00e4h')", "bit_length('a')",
        "locate('b', 'abc')", "concat('a', 'b')", 'mod(7, 3)',
        "timestampadd(SQL_TSI_DAY, 2, {ts '2024-01-02 03:04:05'})",
        "timestampdiff(SQL_TSI_DAY, {ts '2024-01-02 00:00:00'}, {ts '2024-01-05 00:00:00'})",
        "dayofweek({d '2024-01-02'})", "quarter({d '2024-05-02'})", 'ifnull(NULL, 2)',
    ]
    question = ', '.join(f'{{fn {call}}}' for call in calls)
    row = texts(cursor.execute(f'SELECT {question}').fetchall())
    return [row, 0 <= cursor.execute('SELECT {fn rand()}').fetchval() < 1]


@check
def outer_joins_of_odbc():
    joined = '(SELECT 1 n) a LEFT OUTER JOIN (SELECT 2 n) b ON a.n = b.n'
    return texts(cursor.execute(f'SELECT a.n, b.n FROM {{oj {joined}}}').fetchall())


@check
def several_statements():
    cursor.execute('SELECT 1; SELECT 2')
    first = cursor.fetchval()
    return [first, cursor.nextset(), cursor.fetchval()]


@check
def drop():
    cursor.execute('DROP VIEW od_view')
    cursor.execute('DROP TABLE od_rows')
    cursor.execute('DROP TABLE od_all')
    return len(cursor.tables(table='od_%').fetchall())


connection.close()
print(json.dumps(seen))
