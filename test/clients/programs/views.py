"""SQLAlchemy and Alembic over views of all kinds: `views.py PORT`.

Prints one line of JSON with the result or error of each check.
"""
import json
import sys
import warnings

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

warnings.simplefilter('ignore')
engine = sa.create_engine(f'postgresql+psycopg://admin:quest@127.0.0.1:{sys.argv[1]}/qdb')
seen = {}


def check(work):
    """Runs a check immediately, under its function's name."""
    try:
        seen[work.__name__] = work()
    except Exception as error:  # Later checks run even if this one fails.
        seen[work.__name__] = f'{type(error).__name__}: {error}'


def ours(names):
    return sorted(name for name in names if name.startswith('vw_'))


inspector = sa.inspect(engine)


@check
def names():
    return [ours(inspector.get_table_names()), ours(inspector.get_view_names()),
            ours(inspector.get_materialized_view_names())]


@check
def columns():
    return {view: [f"{column['name']} {column['type']}" for column in inspector.get_columns(view)]
            for view in ('vw_plain', 'vw_hours', 'vw_live')}


@check
def definitions():
    return [inspector.get_view_definition(view)[:20] for view in ('vw_plain', 'vw_hours', 'vw_live')]


@check
def reflected():
    metadata = sa.MetaData()
    metadata.reflect(engine, views=True)
    live = metadata.tables['vw_live']
    with engine.connect() as connection:
        largest = sa.select(sa.func.max(live.c.total))
        return [ours(metadata.tables), connection.execute(largest).scalar()]


@check
def autogenerate():
    metadata = sa.MetaData()
    sa.Table(
        'vm_sites', metadata, sa.Column('id', sa.Integer, primary_key=True),
        sa.Column('name', sa.String(40), nullable=False, unique=True), sa.Column('note', sa.Text),
        sa.Column('open', sa.Boolean, server_default=sa.true()),
        sa.Column('price', sa.Numeric(10, 2), server_default='1.5'),
        sa.Column('made', sa.DateTime(timezone=True), server_default=sa.func.now()),
    )
    sa.Table(
        'vm_readings', metadata, sa.Column('at', sa.DateTime, primary_key=True),
        sa.Column('site', sa.Integer, sa.ForeignKey('vm_sites.id', ondelete='CASCADE'),
                  primary_key=True),
        sa.Column('value', sa.Double), sa.Column('n', sa.BigInteger),
        sa.Column('s', sa.SmallInteger), sa.Column('u', sa.Uuid),
        sa.Column('t', sa.Text, index=True), sa.Index('vm_readings_v', 'value', 'n'),
        sa.UniqueConstraint('n', 's', name='vm_once'),
    )

    def is_ours(_, name, kind, *__):
        return kind != 'table' or name.startswith('vm_')

    options = {'compare_type': True, 'compare_server_default': True, 'include_object': is_ours}
    found = []
    with engine.connect() as connection:
        metadata.create_all(connection)
        connection.commit()
        for _ in range(2):
            context = MigrationContext.configure(connection, opts=options)
            found.append([str(change) for change in compare_metadata(context, metadata)])
        metadata.drop_all(connection)
        connection.commit()
    return found


engine.dispose()
print(json.dumps(seen))
