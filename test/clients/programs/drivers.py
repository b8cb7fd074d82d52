"""A Python driver against a server: `drivers.py PORT DRIVER`. Prints one line of JSON."""
import asyncio
import datetime
import io
import json
import os
import sys
import threading
import time
import uuid

PORT = int(sys.argv[1])
URL = f'postgresql://admin:quest@127.0.0.1:{PORT}/qdb'
DSN = f'host=127.0.0.1 port={PORT} user=admin password=quest dbname=qdb'
WHEN = datetime.datetime(2024, 1, 1, 0, 0, 0, 7)
ID = uuid.UUID('11111111-2222-3333-4444-555555555555')
# The SQL is unique, to distinguish the query from those of other sessions.
SLOW = f'SELECT sum(sqrt(x)) AS {sys.argv[2]} FROM long_sequence(100000000000)'
TYPES = (
    'ts TIMESTAMP, b BOOLEAN, h SHORT, i INT, l LONG, f FLOAT, d DOUBLE, s SYMBOL, v VARCHAR, '
    'u UUID, ip IPV4, g GEOHASH(4c), n DECIMAL(18,3)'
)
VALUES = [
    WHEN, True, -7, 123456, 2**53 + 1, 1.5, -2.25, 'sym', "it's \u00e9", ID, '10.0.0.1', 'u33d',
    '12.500',
]


def slow_is_cancelled(execute, cancel):
    """Returns the seconds from cancelling to the error, and its SQLSTATE."""
    timer = threading.Timer(0.5, cancel)
    timer.start()
    started = time.monotonic()
    try:
        execute()
    except Exception as error:
        assert time.monotonic() - started < 20
        return error.sqlstate
    finally:
        timer.join()
    return None


def parameters(c):
    """Parameters whose type comes from the value or from its context, in text and binary format."""
    from decimal import Decimal

    noon = datetime.datetime(2026, 1, 1, 12)
    hour = datetime.timedelta(hours=1)
    c.execute(
        "CREATE TABLE pq AS (SELECT timestamp_sequence('2026-01-01', 1000000) ts, x id, "
        "x::double v, CASE WHEN x < 3 THEN 'a' ELSE 'b' END s, x::decimal(18,4) d, "
        "to_uuid(x, 0) u FROM long_sequence(86400)) TIMESTAMP(ts) PARTITION BY DAY"
    )
    rows = 'SELECT count(*) FROM pq WHERE '
    questions = [
        (rows + 'ts IN %s', ['2026-01-01T10']),
        (rows + 'id > %s', [Decimal('1.5')]),
        (rows + 'd > %s', [Decimal('1.12345678')]),
        (rows + 'd = %s', [Decimal('7.0')]),
        ('SELECT %s + 1', [Decimal('1.5')]),
        (rows + 'ts = ANY(%s)', [[noon]]),
        (rows + 'u = ANY(%s)', [[uuid.UUID(int=5), uuid.UUID(int=6)]]),
        (rows + 'id <> ALL(%s)', [[1, 2]]),
        (rows + 'id > ANY(%s)', [[86390, 86395]]),
        (rows + 's <> ALL(%s)', [['a']]),
        (rows + 'id <> ALL(%s)', [[]]),
        (rows + 'ts > %s - interval \'1 hour\'', [noon]),
        (rows + 'ts >= %s - %s AND ts < %s', [noon, hour, noon]),
        ('SELECT max(ts + %s) FROM pq', [datetime.timedelta(days=1, seconds=1)]),
        ('SELECT %s', [hour]),
        ("SELECT %s * 2 - interval '3 days'", [hour]),
        ('SELECT %s::interval', ['1 day 02:03:04.5']),
        ('SELECT age(%s, %s)', [noon + hour, noon]),
        ('SELECT date_trunc(%s, ts) FROM pq LIMIT 1', ['hour']),
        ('SELECT timestamp_floor(%s, max(ts)) FROM pq', ['6h']),
        ('SELECT date_part(%s, max(ts)) FROM pq', ['hour']),
        ('SELECT to_char(max(ts), %s) FROM pq', ['YYYY-MM']),
        ("SELECT json_extract('{\"a\":1}', %s)", ['$.a']),
        ('SELECT string_agg(s, %s) FROM pq WHERE id < 4', ['|']),
        ('SELECT approx_percentile(v, %s) > 1000 FROM pq', [0.5]),
    ]
    found = {}
    for binary in (False, True):
        answers = []
        for question, values in questions:
            try:
                row = c.cursor(binary=binary).execute(question, values, binary=binary).fetchone()
                answers.append(str(row[0]))
            except Exception as error:
                answers.append(f'{question}: {error}')
        found['binary' if binary else 'text'] = answers
    return found


def driver_psycopg():
    import psycopg

    out = {}
    with psycopg.connect(DSN, autocommit=True) as c:
        c.execute(f'CREATE TABLE p3 ({TYPES}) TIMESTAMP(ts) PARTITION BY DAY')
        places = ', '.join(['%s'] * len(VALUES))
        c.execute(f'INSERT INTO p3 VALUES ({places})', VALUES)
        text = c.execute('SELECT * FROM p3').fetchone()
        binary = c.cursor(binary=True).execute('SELECT * FROM p3').fetchone()
        out['types'] = [str(value) for value in text]
        out['same'] = text == binary
        out['parameters'] = parameters(c)
        out['kinds'] = [type(value).__name__ for value in text]
        where = 'SELECT i FROM p3 WHERE u = %s AND ts = %s AND l = %s AND s = %s'
        out['where'] = c.execute(where, [ID, WHEN, 2**53 + 1, 'sym']).fetchone()[0]
        with c.cursor() as k:
            k.executemany('INSERT INTO p3 (ts, i) VALUES (%s, %s)', [(WHEN, n) for n in range(500)])
        out['many'] = c.execute('SELECT count() FROM p3').fetchone()[0]
        with c.pipeline():
            first, second = c.execute('SELECT 1'), c.execute('SELECT 2')
            out['pipeline'] = [first.fetchone()[0], second.fetchone()[0]]
        with c.cursor() as k:
            out['stream'] = sum(1 for _ in k.stream('SELECT x FROM long_sequence(5000)'))
        with c.transaction():
            with c.cursor('named', binary=True) as k:
                k.itersize = 100
                k.execute('SELECT x FROM long_sequence(%s)', [1000])
                out['cursor'] = sum(x for (x,) in k)
        with c.transaction():
            try:
                with c.transaction():
                    c.execute('SELECT * FROM nowhere')
            except psycopg.errors.UndefinedTable as error:
                out['error'] = [error.sqlstate, error.diag.statement_position]
            c.execute('INSERT INTO p3 (ts, i) VALUES (%s, -1)', [WHEN])
            own = 'SELECT count() FROM p3 WHERE i = -1'
            try:
                with c.transaction():
                    c.execute('INSERT INTO p3 (ts, i) VALUES (%s, -1)', [WHEN])
                    out['own'] = [c.execute(own).fetchone()[0]]
                    raise psycopg.Rollback()
            except psycopg.Rollback:
                pass
            with psycopg.connect(DSN, autocommit=True) as other:
                out['own'] += [k.execute(own).fetchone()[0] for k in (c, other)]
        out['nested'] = c.execute('SELECT count() FROM p3 WHERE i = -1').fetchone()[0]
        try:
            with c.transaction():
                c.execute('INSERT INTO p3 (ts, i) VALUES (%s, -2)', [WHEN])
                raise psycopg.Rollback()
        except psycopg.Rollback:
            pass
        out['undone'] = c.execute('SELECT count() FROM p3 WHERE i = -2').fetchone()[0]
        out['cancelled'] = slow_is_cancelled(lambda: c.execute(SLOW), c.cancel_safe)
        c.execute('CREATE TABLE p3c (a INT, v VARCHAR, t TIMESTAMP)')
        for options, kinds in (('', False), ('(FORMAT binary)', True)):
            with c.cursor().copy(f'COPY p3c FROM STDIN {options}') as k:
                if kinds:
                    k.set_types(['int4', 'text', 'timestamp'])
                for n in range(20000):
                    k.write_row((n, None if n % 2 else 'a\tb\n', WHEN))
            with c.cursor().copy(f'COPY p3c TO STDOUT {options}') as k:
                k.set_types(['int4', 'text', 'timestamp'])
                rows = list(k.rows())
            out[f'copy{options}'] = [len(rows), [str(v) for v in rows[-2]]]
        try:
            with c.cursor().copy('COPY p3c FROM STDIN') as k:
                k.write_row((1, 'a', WHEN))
                k.write('x\ty\tz\n')
        except psycopg.Error as error:
            out['copyError'] = [error.sqlstate, error.diag.context]
        out['copied'] = c.execute('SELECT count() FROM p3c').fetchone()[0]
    return out


def driver_psycopg2():
    import psycopg2

    out = {}
    c = psycopg2.connect(DSN)
    with c, c.cursor() as k:
        k.execute('CREATE TABLE p2 (a INT, v VARCHAR, t TIMESTAMP)')
    with c, c.cursor() as k:
        k.executemany('INSERT INTO p2 VALUES (%s, %s, %s)', [(n, 'x', WHEN) for n in range(10)])
        k.copy_expert('COPY p2 FROM STDIN CSV', io.StringIO('10,"a,b",2024-01-01\n11,,2024-01-02\n'))
    with c, c.cursor('named') as k:
        k.itersize = 3
        k.execute('SELECT a FROM p2')
        out['cursor'] = [a for (a,) in k]
    with c.cursor() as k:
        try:
            k.execute('SELECT nope FROM p2')
        except psycopg2.Error as error:
            out['error'] = [error.pgcode, error.diag.statement_position]
    c.rollback()
    with c, c.cursor() as k:
        k.execute(
            'CREATE TABLE p2t (b BOOLEAN, h SHORT, i INT, l LONG, f FLOAT, d DOUBLE, s SYMBOL, '
            'v VARCHAR, n DECIMAL(18,3), t TIMESTAMP)'
        )
        values = (True, -7, 123456, 2**53 + 1, 1.5, -2.25, 'sym', None, 12.5, WHEN)
        k.execute(f"INSERT INTO p2t VALUES ({', '.join(['%s'] * len(values))})", values)
        k.execute('SELECT * FROM p2t')
        out['types'] = [str(value) for value in k.fetchone()]
        out['described'] = [column.name for column in k.description]
        k.execute('SAVEPOINT s')
        k.execute('INSERT INTO p2t (i) VALUES (1)')
        k.execute('ROLLBACK TO s')
    try:
        with c.cursor() as k:
            timer = threading.Timer(0.5, c.cancel)
            timer.start()
            k.execute(SLOW)
    except psycopg2.Error as error:
        out['cancelled'] = error.pgcode
    timer.join()
    c.rollback()
    with c, c.cursor() as k:
        k.execute('SELECT count() FROM p2t')
        out['kept'] = k.fetchone()[0]
    with c, c.cursor() as k:
        target = io.StringIO()
        k.copy_expert("COPY (SELECT a, v FROM p2 WHERE a > 9) TO STDOUT (NULL 'nil')", target)
        out['copy'] = target.getvalue()
    c.close()
    return out


async def asyncpg_session():
    import asyncpg

    out = {}
    c = await asyncpg.connect(URL)
    await c.execute(f'CREATE TABLE ap ({TYPES}) TIMESTAMP(ts) PARTITION BY DAY')
    places = ', '.join(f'${n + 1}' for n in range(len(VALUES)))
    await c.execute(f'INSERT INTO ap VALUES ({places})', *VALUES)
    row = await c.fetchrow('SELECT * FROM ap')
    out['types'] = [str(value) for value in row]
    statement = await c.prepare('SELECT * FROM ap WHERE i = $1')
    out['described'] = [
        [p.name for p in statement.get_parameters()],
        [a.type.name for a in statement.get_attributes()],
    ]
    await c.executemany('INSERT INTO ap (ts, i) VALUES ($1, $2)', [(WHEN, n) for n in range(500)])
    out['many'] = await c.fetchval('SELECT count() FROM ap')
    async with c.transaction():
        rows = [r['x'] async for r in c.cursor('SELECT x FROM long_sequence(100)', prefetch=9)]
        out['cursor'] = sum(rows)
    async with c.transaction():
        try:
            async with c.transaction():
                await c.execute('SELECT * FROM nowhere')
        except asyncpg.UndefinedTableError as error:
            out['error'] = [error.sqlstate, error.position]
        await c.execute('INSERT INTO ap (ts, i) VALUES ($1, -1)', WHEN)
        out['own'] = await c.fetchval('SELECT count() FROM ap WHERE i = -1')
    out['nested'] = await c.fetchval('SELECT count() FROM ap WHERE i = -1')
    try:
        await c.execute(SLOW, timeout=0.5)
    except asyncio.TimeoutError:
        out['cancelled'] = await c.fetchval('SELECT 1')
    await c.execute('CREATE TABLE apc (a INT, v VARCHAR, t TIMESTAMP)')
    records = [(n, 'x', WHEN) for n in range(20000)]
    out['copy'] = [await c.copy_records_to_table('apc', records=records)]
    target = io.BytesIO()
    query = 'SELECT a, v FROM apc WHERE a < 2'
    out['copy'].append(await c.copy_from_query(query, output=target, format='csv'))
    out['copy'].append(target.getvalue().decode())
    out['arrays'] = await asyncpg_arrays(c)
    await c.close()
    out['pool'] = await asyncpg_pool()
    return out


async def asyncpg_pool():
    """A connection returned to its pool is reset: locks, cursors, channels, settings."""
    import asyncpg

    async with asyncpg.create_pool(URL, min_size=2, max_size=4) as pool:
        sums = await asyncio.gather(*(pool.fetchval('SELECT $1::int + 1', n) for n in range(100)))
        async with pool.acquire() as c:
            await c.execute("SET timestamp_precision = 'ns'")
        async with pool.acquire() as c, c.transaction():
            await c.execute('SELECT pg_advisory_lock(1)')
            kept = await c.fetchval('SELECT count() FROM ap WHERE ts IN $1', str(WHEN)[:10])
    return [sum(sums), kept]


async def asyncpg_arrays(c):
    """The driver looks up unknown types in the catalog."""
    await c.execute('CREATE TABLE apa (i INT, s SYMBOL, u UUID, a DOUBLE[], m DOUBLE[][])')
    insert = 'INSERT INTO apa VALUES ($1, $2, $3, $4, $5)'
    await c.execute(insert, 1, 'a b', ID, [1.5, None], [[1.0, 2.0], [3.0, 4.0]])
    await c.execute(insert, 2, 'c', None, [], None)
    rows = await c.fetch('SELECT a, m FROM apa ORDER BY i')
    found = []
    for test, values in (
        ('i = ANY($1)', [2, 9]), ('s = ANY($1)', ['a b', None]), ('s = ANY($1::text[])', ['c']),
        ('u = ANY($1)', [ID]), ('i::long = ANY($1::bigint[])', [1, 2]), ('i = ANY($1)', []),
        ('s IN $1', ['a b', 'c']), ('i NOT IN $1', [1]),
    ):
        found.append([r['i'] for r in await c.fetch(f'SELECT i FROM apa WHERE {test} ORDER BY i', values)])
    return [[list(row) for row in rows], found]


def driver_asyncpg():
    return asyncio.run(asyncpg_session())


def driver_sqlalchemy():
    import pandas as pd
    import sqlalchemy as sa

    out = {}
    for driver in ('psycopg', 'psycopg2'):
        engine = sa.create_engine(URL.replace('postgresql', f'postgresql+{driver}'))
        name = f'sa_{driver}'
        with engine.begin() as c:
            c.execute(sa.text(f'CREATE TABLE {name} (a LONG, v VARCHAR, d DOUBLE)'))
        frame = pd.DataFrame({'a': [1, 2, 3], 'v': ['x', None, 'z'], 'd': [0.5] * 3})
        if driver == 'psycopg2':
            frame.to_sql(name, engine, if_exists='append', index=False)
        else:
            rows = frame.astype(object).where(frame.notna(), None).to_dict('records')
            with engine.begin() as c:
                c.execute(sa.text(f'INSERT INTO {name} VALUES (:a, :v, :d)'), rows)
        with engine.connect() as c:
            query = sa.text(f'SELECT a, v FROM {name} WHERE a > :low')
            read = pd.read_sql(query, c, params={'low': 1})
            stream = c.execution_options(stream_results=True, yield_per=100)
            total = sum(x for (x,) in stream.execute(sa.text('SELECT x FROM long_sequence(1000)')))
        with engine.begin() as c:
            try:
                with c.begin_nested():
                    c.execute(sa.text('SELECT * FROM nowhere'))
            except sa.exc.ProgrammingError as error:
                state = getattr(error.orig, 'sqlstate', None) or error.orig.pgcode
            c.execute(sa.text(f'INSERT INTO {name} (a) VALUES (4)'))
        with engine.connect() as c:
            count = c.execute(sa.text(f'SELECT count() FROM {name}')).scalar_one()
        read = [[a, v if isinstance(v, str) else None] for a, v in read.to_numpy().tolist()]
        out[driver] = [read, total, state, count, sa.inspect(engine).has_table(name)]
        out[f'{driver} reflects'] = reflected(engine, f'{name}_r')
        engine.dispose()
    return out


def reflected(engine, name):
    """What SQLAlchemy reads from the catalog, and what pandas builds on it."""
    import pandas as pd
    import sqlalchemy as sa

    with engine.begin() as c:
        c.execute(sa.text(
            f'CREATE TABLE {name} (ts TIMESTAMP NOT NULL, s SYMBOL, v DOUBLE DEFAULT 1.5, l LONG, '
            'u UUID, n DECIMAL(18,3), i INT, b BOOLEAN, a DOUBLE[]) TIMESTAMP(ts) PARTITION BY DAY'
        ))
        c.execute(sa.text(f'CREATE VIEW {name}_v AS (SELECT l, s FROM {name})'))
    of = sa.inspect(engine)
    columns = of.get_columns(name)
    none = [of.get_indexes(name), of.get_foreign_keys(name), of.get_unique_constraints(name),
            of.get_check_constraints(name), of.get_sequence_names(), of.get_enums()]
    table = sa.Table(name, sa.MetaData(), autoload_with=engine)
    whole = sa.MetaData()
    whole.reflect(engine)
    with engine.begin() as c:
        c.execute(table.insert(), [{'ts': WHEN, 's': 'x', 'l': n} for n in range(3)])
        rows = c.execute(sa.select(table.c.l, table.c.v).where(table.c.s == 'x')).all()
    made = f'{name}_m'
    frame = pd.DataFrame({'a': [1, 2], 'v': ['x', None], 'd': [0.5, None], 'b': [True, False],
                          't': [WHEN, WHEN + datetime.timedelta(days=1)]})
    for exists in ('fail', 'replace', 'append'):
        frame.to_sql(made, engine, index=False, if_exists=exists)
    back = pd.read_sql_table(made, engine)
    return {
        'tables': [n in of.get_table_names() for n in (name, f'{name}_v')],
        'views': [n in of.get_view_names() for n in (name, f'{name}_v')],
        'schemas': of.get_schema_names(),
        'columns': [f"{c['name']} {c['type']} {c['nullable']} {c['default']}" for c in columns],
        'view': [f"{c['name']} {c['type']}" for c in of.get_columns(f'{name}_v')],
        'pk': of.get_pk_constraint(name)['constrained_columns'],
        'comment': of.get_table_comment(name),
        'none': none,
        'autoload': [c.name for c in table.columns],
        'reflect': name in whole.tables,
        'rows': [list(row) for row in rows],
        'made': [str(kind) for kind in back.dtypes],
        'back': [len(back), int(back['a'].sum()), str(back['t'].max())],
        'read': pd.read_sql(f'SELECT a FROM {made} WHERE d > 0.1', engine)['a'].tolist(),
    }


def driver_django():
    import django
    import psycopg
    from django.conf import settings
    from django.core.management import call_command

    with psycopg.connect(DSN, autocommit=True) as c:
        c.execute('CREATE TABLE dj (ts TIMESTAMP, s SYMBOL, v DOUBLE, l LONG) TIMESTAMP(ts)')
    settings.configure(DATABASES={'default': {
        'ENGINE': 'django.db.backends.postgresql', 'NAME': 'qdb', 'USER': 'admin',
        'PASSWORD': 'quest', 'HOST': '127.0.0.1', 'PORT': sys.argv[1],
    }}, INSTALLED_APPS=[], USE_TZ=False)
    django.setup()
    from django.db import connection, models, transaction

    class Row(models.Model):
        ts = models.DateTimeField(primary_key=True)
        s = models.CharField()
        v = models.FloatField()

        class Meta:
            app_label = 'app'
            managed = False
            db_table = 'dj'

    for n in range(3):
        Row.objects.create(ts=WHEN, s='x', v=n)
    with transaction.atomic():
        Row.objects.create(ts=WHEN, s='y', v=7)
    out = {
        'count': Row.objects.filter(v__gt=0).count(),
        'sums': list(Row.objects.values('s').annotate(sum=models.Sum('v')).order_by('s')
                     .values_list('s', 'sum')),
        'first': str(Row.objects.order_by('v').first().ts),
    }
    of = connection.introspection
    with connection.cursor() as k:
        out['there'] = 'dj' in of.table_names(k)
        out['columns'] = [f'{c.name} {of.get_field_type(c.type_code, c)}'
                          for c in of.get_table_description(k, 'dj')]
        out['none'] = [of.get_constraints(k, 'dj'), of.get_relations(k, 'dj'),
                       of.get_sequences(k, 'dj')]
    text = io.StringIO()
    call_command('inspectdb', 'dj', stdout=text)
    out['model'] = [line.strip() for line in text.getvalue().split('\n') if ' models.' in line]
    return out


def driver_peewee():
    import peewee
    from playhouse.reflection import generate_models

    db = peewee.PostgresqlDatabase(
        'qdb', user='admin', password='quest', host='127.0.0.1', port=int(sys.argv[1]))
    db.execute_sql('CREATE TABLE pw (ts TIMESTAMP, s SYMBOL, v DOUBLE, l LONG) TIMESTAMP(ts)')
    model = generate_models(db, table_names=['pw'])['pw']
    with db.atomic():
        model.insert_many([{'ts': WHEN, 's': 'x', 'v': n} for n in range(3)]).execute(db)
    return {
        'count': model.select().where(model.v > 0).count(),
        'columns': [f'{c.name} {c.data_type}' for c in db.get_columns('pw')],
        'none': [db.get_indexes('pw'), db.get_primary_keys('pw'), db.get_foreign_keys('pw')],
    }


def driver_connectorx():
    import connectorx
    import polars

    query = (
        'SELECT x, x * 0.5 AS y, cast(x AS VARCHAR) AS v, cast(x * 1000000 AS TIMESTAMP) AS t, '
        'x % 2 = 0 AS b FROM long_sequence(100000)'
    )
    whole = connectorx.read_sql(URL, query, return_type='arrow')
    last = whole.slice(whole.num_rows - 1).to_pylist()[0]
    frame = polars.read_database_uri(query, URL)
    old = polars.read_database_uri(query, URL.replace('postgresql', 'redshift'))
    none = connectorx.read_sql(URL, 'SELECT x FROM long_sequence(9) WHERE x > 9', return_type='arrow')
    return {
        'last': [str(value) for value in last.values()],
        'polars': [list(frame.shape), frame['y'].sum()],
        'redshift': [list(old.shape), old['y'].sum()],
        'empty': none.num_rows,
    }


def driver_adbc_driver_postgresql():
    import adbc_driver_postgresql.dbapi as adbc

    out = {}
    with adbc.connect(URL) as c, c.cursor() as k:
        k.execute(
            'SELECT x, x * 0.5 AS y, cast(x AS VARCHAR) AS v, '
            'cast(x * 1000000 AS TIMESTAMP) AS t, x % 2 = 0 AS b FROM long_sequence(10000)'
        )
        table = k.fetch_arrow_table()
        out['rows'] = table.num_rows
        out['kinds'] = [str(field.type) for field in table.schema]
        out['last'] = [str(v) for v in table.slice(table.num_rows - 1).to_pylist()[0].values()]
        try:
            k.execute('SELECT * FROM nowhere')
        except adbc.Error as error:
            out['error'] = error.sqlstate
        c.rollback()
    with adbc.connect(URL, autocommit=True) as c, c.cursor() as k:
        k.execute('CREATE TABLE ad (i INT, v VARCHAR)')
        k.executemany('INSERT INTO ad VALUES ($1, $2)', [(n, 'x') for n in range(500)])
        k.execute('SELECT count() FROM ad')
        out['many'] = k.fetchone()[0]
    with adbc.connect(URL) as c, c.cursor() as k:
        k.execute("INSERT INTO ad VALUES (-1, 'gone')")
        c.rollback()
        k.execute('SELECT count() FROM ad WHERE i = $1', [-1])
        out['undone'] = k.fetchone()[0]
        k.execute("INSERT INTO ad VALUES (-2, 'kept')")
        c.commit()
        k.execute('SELECT v FROM ad WHERE i = -2')
        out['kept'] = k.fetchone()[0]
    return out


print(json.dumps(globals()[f'driver_{sys.argv[2]}']()), flush=True)
# Driver threads may abort an interpreter that is shutting down.
os._exit(0)
