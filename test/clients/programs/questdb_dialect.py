"""Runs questdb-connect, QuestDB's SQLAlchemy dialect and its engine specification for Superset.

Arguments: the port, then the URIs of `docs/connect/superset.md`. Prints one line of JSON with the
result or error of each check. Superset's base classes are replaced by empty ones, because Superset
is too large to install for a test.
"""

import json
import sys
import types
from datetime import datetime


class Base:
    """Stands for any class of Superset."""


def replace_superset():
    """Defines the modules of Superset that the engine specification imports."""
    contents = {
        'superset': {'sql_parse': types.SimpleNamespace(strip_comments_from_sql=str)},
        'superset.db_engine_specs': {},
        'superset.db_engine_specs.base': {
            'BaseEngineSpec': type('BaseEngineSpec', (), {}),
            'BasicParametersMixin': type('BasicParametersMixin', (), {}),
            'BasicParametersType': Base,
        },
        'superset.utils': {},
        'superset.utils.core': {
            'ColumnSpec': lambda sqla_type, generic, is_dttm: (sqla_type, generic, is_dttm),
            'ColumnTypeSource': types.SimpleNamespace(GET_TABLE=1),
            'GenericDataType': types.SimpleNamespace(NUMERIC=0, STRING=1, TEMPORAL=2, BOOLEAN=3),
        },
    }
    for name, attributes in contents.items():
        module = sys.modules[name] = types.ModuleType(name)
        vars(module).update(attributes)
        parent, _, child = name.rpartition('.')
        if parent:
            setattr(sys.modules[parent], child, module)


replace_superset()

import pandas  # noqa: E402
import questdb_connect  # noqa: E402
import sqlalchemy  # noqa: E402
from qdb_superset.db_engine_specs.questdb import QuestDbEngineSpec  # noqa: E402
from questdb_connect.keywords_functions import get_functions_list, get_keywords_list  # noqa: E402
from sqlalchemy import text  # noqa: E402

TYPES = (
    'a BOOLEAN, b BYTE, c SHORT, d CHAR, e INT, f LONG, g DATE, h TIMESTAMP, i FLOAT, j DOUBLE, '
    'k STRING, l SYMBOL, m LONG256, n GEOHASH(8b), o GEOHASH(12c), p UUID, q VARCHAR'
)
PORT = int(sys.argv[1])
engine = questdb_connect.create_superset_engine('127.0.0.1', PORT, 'admin', 'quest')
checks = {}


def check(work):
    """Stores the result of a check, or its error."""
    try:
        checks[work.__name__] = work()
    except Exception as error:  # pylint: disable=broad-except
        message = str(error).strip().splitlines()
        checks[work.__name__] = f'{type(error).__name__}: {message[0] if message else ""}'
    return work


def rows(statement, parameters=None):
    with engine.connect() as connection:
        found = connection.execute(text(statement), parameters or {})
        return [[shown(value) for value in row] for row in found]


def shown(value):
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


@check
def uris():
    """Connects with each URI of the page."""
    seen = []
    for uri in sys.argv[2:]:
        with sqlalchemy.create_engine(uri).connect() as connection:
            seen.append(connection.execute(text('SELECT current_user')).scalar())
    return seen


@check
def words():
    """The keywords and functions for completion come from the server, not from built-in lists."""
    connection = engine.raw_connection()
    with connection.cursor() as cursor:
        cursor.execute('SELECT count() FROM keywords()')
        keywords = cursor.fetchone()[0]
        cursor.execute('SELECT count() FROM functions()')
        functions = cursor.fetchone()[0]
    return [len(get_keywords_list()) == keywords, len(get_functions_list()) == functions]


@check
def create():
    """Creates tables from a model and with SQL, and inserts rows."""
    metadata = sqlalchemy.MetaData()
    sqlalchemy.Table(
        'qc_readings',
        metadata,
        sqlalchemy.Column('at', questdb_connect.Timestamp, primary_key=True),
        sqlalchemy.Column('sensor', questdb_connect.Symbol(capacity=64, cache=True)),
        sqlalchemy.Column('value', questdb_connect.Double),
        questdb_connect.QDBTableEngine(
            'qc_readings', 'at', questdb_connect.PartitionBy.DAY, True, ('at', 'sensor')
        ),
    )
    metadata.create_all(engine)
    with engine.connect() as connection:
        connection.execute(text(f'CREATE TABLE qc_types ({TYPES}) TIMESTAMP(h) PARTITION BY DAY'))
        table = metadata.tables['qc_readings']
        connection.execute(
            table.insert(),
            [
                {'at': datetime(2026, 1, 31, hour, minute), 'sensor': sensor, 'value': hour + minute / 60}
                for hour in (0, 1, 23)
                for minute, sensor in ((0, 'north'), (30, 'south'))
            ],
        )
    return rows('SELECT count(), min(at), sum(value) FROM qc_readings')


@check
def tables():
    inspector = sqlalchemy.inspect(engine)
    names = [name for name in inspector.get_table_names() if name.startswith('qc_')]
    return [sorted(names), inspector.has_table('qc_types'), inspector.has_table('qc_none')]


@check
def columns():
    """Columns as Superset reads them, with the types that the engine specification derives."""
    spec = []
    for column in sqlalchemy.inspect(engine).get_columns('qc_types'):
        name = column['type'].__visit_name__
        _, generic, is_time = QuestDbEngineSpec.get_column_spec(name)
        spec.append(f'{column["name"]} {name} {generic} {is_time}')
    return spec


@check
def unknown():
    """Types that the dialect does not know, and that therefore stop it from reading a table."""
    seen = {}
    for kind in ('IPv4', 'TIMESTAMP_NS', 'DECIMAL(10,2)', 'DOUBLE[]', 'BINARY'):
        with engine.connect() as connection:
            connection.execute(text(f'CREATE TABLE qc_unknown (a {kind})'))
        try:
            seen[kind] = len(sqlalchemy.inspect(engine).get_columns('qc_unknown'))
        except TypeError as error:
            seen[kind] = f'TypeError: {error}'
        with engine.connect() as connection:
            connection.execute(text('DROP TABLE qc_unknown'))
    return seen


@check
def reflected():
    """A reflected table has its designated timestamp, its partitions and its DEDUP keys."""
    table = sqlalchemy.Table('qc_readings', sqlalchemy.MetaData(), autoload_with=engine)
    made = table.engine
    return [
        [f'{column.name} {column.type.__visit_name__}' for column in table.columns],
        [made.ts_col_name, made.partition_by.name, made.is_wal, list(made.dedup_upsert_keys)],
    ]


@check
def query():
    """Conditions, grouping and both bounds of LIMIT."""
    table = sqlalchemy.Table('qc_readings', sqlalchemy.MetaData(), autoload_with=engine)
    statement = (
        sqlalchemy.select(table.c.at, table.c.value)
        .where(table.c.sensor == 'north')
        .order_by(table.c.at)
        .limit(1)
        .offset(1)
    )
    with engine.connect() as connection:
        return [[shown(value) for value in row] for row in connection.execute(statement)]


@check
def frame():
    read = pandas.read_sql('SELECT at, sensor, value FROM qc_readings LIMIT 2', engine)
    return [[str(kind) for kind in read.dtypes], read.astype(str).values.tolist()]


@check
def schema():
    """The dialect removes the schema, which Superset adds to names."""
    return rows('SELECT count() FROM public.qc_readings')


@check
def grains():
    """The first group of each time grain, as a chart of Superset queries it."""
    seen = {}
    for grain, expression in QuestDbEngineSpec._time_grain_expressions.items():
        group = expression.format(col='at')
        found = rows(
            f'SELECT {group} AS __timestamp, sensor AS sensor, avg(value) AS "AVG(value)" '
            f'FROM qc_readings GROUP BY {group}, sensor ORDER BY __timestamp, sensor LIMIT 1'
        )
        seen[str(grain)] = found[0]
    return seen


@check
def ranges():
    """A time range as Superset filters it, for both types of time."""
    start, end = datetime(2026, 1, 31, 1), datetime(2026, 1, 31, 23)
    seen = []
    for kind in ('TIMESTAMP', 'DATE'):
        since, until = (QuestDbEngineSpec.convert_dttm(kind, one) for one in (start, end))
        condition = f'at >= {since} AND at < {until}'
        seen.append(rows(f'SELECT count() FROM qc_readings WHERE {condition}'))
    return seen


@check
def epoch():
    """A column with seconds since 1970, as a time."""
    seconds = QuestDbEngineSpec.epoch_to_dttm().format(col='x')
    return rows(f'SELECT ({seconds})::timestamp FROM long_sequence(1)')


@check
def virtual():
    """A dataset defined by a query, and an alias with special characters."""
    return rows(
        'SELECT sensor AS sensor, max(value) AS "MAX(value)" FROM (SELECT * FROM qc_readings '
        "WHERE at IN '2026-01-31') AS virtual_table GROUP BY sensor ORDER BY \"MAX(value)\" DESC "
        'LIMIT 1000'
    )


@check
def wrong():
    return rows('SELECT sensor, no FROM qc_readings')


@check
def drop():
    with engine.connect() as connection:
        connection.execute(text('DROP TABLE qc_readings'))
        connection.execute(text('DROP TABLE qc_types'))
    return [name for name in sqlalchemy.inspect(engine).get_table_names() if name[:3] == 'qc_']


print(json.dumps(checks))
