"""ibis against a server: `ibis_postgres.py PORT`. Prints the result or error of each check as JSON."""
import datetime
import json
import sys
import warnings

import ibis
import pandas

warnings.filterwarnings('ignore')
connection = ibis.postgres.connect(
    host='127.0.0.1', port=int(sys.argv[1]), user='admin', password='quest', database='qdb'
)
seen = {}


def check(function):
    """Runs the check immediately, and records its result or error."""
    try:
        seen[function.__name__] = function()
    except Exception as error:
        seen[function.__name__] = f'{type(error).__name__}: {error}'.split('\n')[0]
    return function


def plain(value):
    if isinstance(value, (pandas.Timestamp, datetime.datetime, datetime.date)):
        return str(value)[:19]
    if hasattr(value, 'item'):
        value = value.item()
    if isinstance(value, float):
        return None if value != value else round(value, 6)
    return value


def rows(expression):
    return [[plain(cell) for cell in row] for row in expression.execute().values.tolist()]


TIMES = ['2026-01-01 00:00', '2026-01-01 00:30', '2026-01-01 01:10']


@check
def create_table():
    frame = pandas.DataFrame(
        {
            'at': pandas.to_datetime(TIMES),
            'sensor': ['a', 'b', 'a'],
            'value': [1.0, 2.0, 4.5],
            'n': [1, 2, 3],
        }
    )
    return str(connection.create_table('ib_t', frame).schema())


@check
def create_by_schema():
    columns = {'id': 'int64', 'name': 'string', 'ok': 'boolean', 'at': 'timestamp'}
    return str(connection.create_table('ib_s', schema=ibis.schema(columns)).schema())


@check
def list_tables():
    names = [name for name in connection.list_tables() if name.startswith('ib_')]
    return [sorted(names), connection.current_database, connection.current_catalog]


t = connection.table('ib_t')


@check
def schema():
    return [[name, str(kind)[:9]] for name, kind in t.schema().items()]


@check
def execute():
    return rows(t.order_by('n'))


@check
def groups():
    totals = t.group_by('sensor').agg(total=t.value.sum(), most=t.n.max())
    return rows(totals.order_by('sensor'))


@check
def hours():
    return rows(t.group_by(hour=t.at.truncate('h')).agg(count=t.count()).order_by('hour'))


@check
def windows():
    over = ibis.window(order_by=t.at)
    with_number = t.mutate(place=ibis.row_number().over(over), before=t.value.lag().over(over))
    return rows(with_number.order_by('n')['place', 'before'])


@check
def joins():
    return plain(t.join(t.view(), 'sensor').count().execute())


@check
def filters():
    after = t.at > datetime.datetime(2026, 1, 1, 0, 10)
    return [plain(t.filter(test).count().execute()) for test in (after, t.sensor.isin(['a']))]


@check
def texts():
    kind = ibis.cases((t.n == 1, 'one'), else_='many')
    made = t.mutate(upper=t.sensor.upper() + 'x', length=t.sensor.length(), kind=kind)
    return rows(made.order_by('n')['upper', 'length', 'kind'])


@check
def times():
    made = t.mutate(hour=t.at.hour(), epoch=t.at.epoch_seconds(), later=t.at + ibis.interval(hours=2))
    return rows(made.order_by('n')['hour', 'epoch', 'later'])


@check
def dates():
    return rows(t.mutate(day=t.at.date()).order_by('n')['day', 'n'])


@check
def numbers():
    made = t.mutate(x=(t.value / t.n).round(2), y=t.n % 2, z=t.value.sqrt())
    return rows(made.order_by('n')['x', 'y', 'z'])


@check
def statistics():
    value = t.value
    return rows(
        t.aggregate(
            a=value.std(), b=value.mean(), c=value.median(), d=value.quantile(0.5),
            e=t.sensor.nunique(),
        )
    )


@check
def arrow():
    ordered = t.order_by('n').to_pyarrow()
    batches = sum(batch.num_rows for batch in t.to_pyarrow_batches())
    return [str(ordered.schema).replace('\n', ', '), batches]


@check
def insert():
    frame = pandas.DataFrame(
        {'id': [1, 2], 'name': ['x', None], 'ok': [True, False], 'at': pandas.to_datetime(TIMES[:2])}
    )
    connection.insert('ib_s', frame)
    return rows(connection.table('ib_s').order_by('id'))


@check
def truncate():
    connection.truncate_table('ib_s')
    return plain(connection.table('ib_s').count().execute())


@check
def temporary_table():
    return plain(connection.create_table('ib_temp', t.to_pandas(), temp=True).count().execute())


@check
def collected():
    lists = t.group_by('sensor').agg(all=t.sensor.collect(), joined=t.sensor.group_concat('+'))
    return rows(lists.order_by('sensor'))


@check
def value_counts():
    return rows(t.sensor.value_counts().order_by('sensor'))


@check
def unions():
    return [plain(t.union(t).count().execute()), rows(t.select('sensor').distinct().order_by('sensor'))]


@check
def in_memory():
    return plain(connection.execute(ibis.memtable({'a': [1, 2]}).a.sum()))


@check
def raw():
    return connection.raw_sql('SELECT 1, 2').fetchall()


connection.raw_sql('DROP TABLE ib_t')
connection.raw_sql('DROP TABLE ib_s')
print(json.dumps(seen))
