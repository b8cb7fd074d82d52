"""Python tools that create and alter tables: `migrations.py PORT TOOL [FOLDER]`.

Prints one line of JSON with the result or error of each check.
"""
import datetime
import json
import os
import sys
import tempfile

PORT = int(sys.argv[1])
USER, PASSWORD = 'admin', 'quest'
URL = f'postgresql+psycopg://{USER}:{PASSWORD}@127.0.0.1:{PORT}/qdb'
NOON = datetime.datetime(2026, 1, 1, 12)
seen = {}


def check(work):
    """Runs a check immediately, under its function's name."""
    try:
        seen[work.__name__] = work()
    except Exception as error:  # Later checks run even if this one fails.
        seen[work.__name__] = f'{type(error).__name__}: {error}'


def tool_sqlalchemy():
    import sqlalchemy as sa
    from sqlalchemy.orm import DeclarativeBase, Session, relationship

    class Base(DeclarativeBase):
        pass

    class Place(Base):
        __tablename__ = 'sa_places'
        id = sa.Column(sa.Integer, primary_key=True)
        name = sa.Column(sa.String(40), nullable=False, unique=True)
        height = sa.Column(sa.Numeric(10, 2), server_default='1.5')
        readings = relationship('Reading', back_populates='place')

    class Reading(Base):
        __tablename__ = 'sa_readings'
        at = sa.Column(sa.DateTime, primary_key=True)
        place_id = sa.Column(sa.ForeignKey('sa_places.id'), primary_key=True, index=True)
        value = sa.Column(sa.Double, sa.CheckConstraint('value > 0'))
        place = relationship('Place', back_populates='readings')

    engine = sa.create_engine(URL)

    @check
    def create_all():
        Base.metadata.create_all(engine)
        Base.metadata.create_all(engine)  # The second time, all tables already exist.
        return sorted(name for name in sa.inspect(engine).get_table_names() if 'sa_' in name)

    @check
    def rows():
        with Session(engine) as session:
            north, south = Place(id=1, name='north'), Place(id=2, name='south')
            north.readings = [Reading(at=NOON, value=1.5), Reading(at=NOON.replace(hour=13), value=2)]
            session.add_all([north, south])
            session.commit()
            found = session.scalars(sa.select(Place).order_by(Place.id)).all()
            return [[one.name, str(one.height), len(one.readings)] for one in found]

    @check
    def numbered():
        with Session(engine) as session:
            place = Place(name='west')
            session.add(place)
            session.flush()
            is_numbered = place.id > 2
            session.rollback()
            return is_numbered

    @check
    def upsert():
        from sqlalchemy.dialects.postgresql import insert

        table = Reading.__table__
        value = insert(table).values(at=NOON, place_id=1, value=9)
        with engine.begin() as connection:
            update = {'value': value.excluded.value}
            keys = [table.c.at, table.c.place_id]
            connection.execute(value.on_conflict_do_update(index_elements=keys, set_=update))
            connection.execute(
                insert(table)
                .values(at=NOON, place_id=1, value=7)
                .on_conflict_do_nothing(index_elements=keys)
            )
            return [list(row) for row in connection.execute(
                sa.select(table.c.place_id, table.c.value).order_by(table.c.at)
            )]

    @check
    def hours():
        hour = sa.func.date_trunc('hour', Reading.at)
        with engine.connect() as connection:
            rows = connection.execute(sa.select(hour, sa.func.count()).group_by(hour).order_by(hour))
            return [[str(at), count] for at, count in rows]

    @check
    def reflect():
        metadata = sa.MetaData()
        metadata.reflect(engine, only=['sa_places', 'sa_readings'])
        table = metadata.tables['sa_readings']
        return [f'{column.name} {column.type} {column.nullable}' for column in table.columns]

    @check
    def keys():
        about = sa.inspect(engine)
        key = about.get_pk_constraint('sa_readings')['constrained_columns']
        return [key, about.get_foreign_keys('sa_readings'), about.get_indexes('sa_readings')]

    @check
    def temporary():
        with engine.connect() as connection:
            connection.execute(sa.text('CREATE TEMPORARY TABLE sa_own (n INT)'))
            connection.execute(sa.text('INSERT INTO sa_own VALUES (1), (2)'))
            count = connection.execute(sa.text('SELECT count(*) FROM sa_own')).scalar_one()
            connection.commit()
            connection.invalidate()
        return count

    @check
    def drop_all():
        Base.metadata.drop_all(engine)
        return [name for name in sa.inspect(engine).get_table_names() if 'sa_' in name]


REVISIONS = {
    'a1': '''
def upgrade():
    op.create_table(
        'al_readings',
        sa.Column('id', sa.Integer, primary_key=True),
        sa.Column('at', sa.DateTime, nullable=False),
        sa.Column('value', sa.Float, server_default='0'),
    )
    op.create_index('al_readings_at', 'al_readings', ['at'])
    op.bulk_insert(
        sa.table('al_readings', sa.column('id'), sa.column('at'), sa.column('value')),
        [{'id': 1, 'at': '2026-01-01T12:00:00', 'value': 1.5}],
    )

def downgrade():
    op.drop_index('al_readings_at', 'al_readings')
    op.drop_table('al_readings')
''',
    'b2': '''
def upgrade():
    op.add_column('al_readings', sa.Column('place', sa.String(20), nullable=True))
    op.execute("UPDATE al_readings SET place = 'north'")
    op.alter_column('al_readings', 'place', nullable=False)
    op.alter_column('al_readings', 'value', new_column_name='celsius')
    op.alter_column('al_readings', 'celsius', server_default='1.5')
    op.create_unique_constraint('al_unique', 'al_readings', ['place'])
    op.create_check_constraint('al_check', 'al_readings', 'celsius > -273')

def downgrade():
    op.drop_constraint('al_check', 'al_readings')
    op.drop_constraint('al_unique', 'al_readings')
    op.alter_column('al_readings', 'celsius', server_default=None)
    op.alter_column('al_readings', 'celsius', new_column_name='value')
    op.alter_column('al_readings', 'place', nullable=True)
    op.drop_column('al_readings', 'place')
''',
    'c3': '''
def upgrade():
    op.rename_table('al_readings', 'al_measures')
    op.alter_column('al_measures', 'celsius', type_=sa.Numeric(12, 3))

def downgrade():
    op.alter_column('al_measures', 'celsius', type_=sa.Float)
    op.rename_table('al_measures', 'al_readings')
''',
}
ENVIRONMENT = '''
from alembic import context
import sqlalchemy as sa
engine = sa.create_engine(context.config.get_main_option('sqlalchemy.url'))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=sa.MetaData())
    with context.begin_transaction():
        context.run_migrations()
'''


def revisions(folder):
    """Writes a folder of consecutive migrations."""
    versions = os.path.join(folder, 'versions')
    os.makedirs(versions)
    with open(os.path.join(folder, 'env.py'), 'w') as file:
        file.write(ENVIRONMENT)
    before = None
    for name, text in REVISIONS.items():
        with open(os.path.join(versions, f'{name}.py'), 'w') as file:
            file.write(
                'import sqlalchemy as sa\nfrom alembic import op\n'
                f'revision = {name!r}\ndown_revision = {before!r}\n{text}'
            )
        before = name


def tool_alembic():
    import io

    import sqlalchemy as sa
    from alembic import command
    from alembic.autogenerate import compare_metadata
    from alembic.config import Config
    from alembic.migration import MigrationContext

    folder = tempfile.mkdtemp(prefix='tidemark-alembic-')
    revisions(folder)
    out = io.StringIO()
    config = Config(stdout=out)
    config.set_main_option('script_location', folder)
    config.set_main_option('path_separator', 'os')
    config.set_main_option('sqlalchemy.url', URL)
    engine = sa.create_engine(URL)

    def columns(table):
        about = sa.inspect(engine).get_columns(table)
        return [f"{one['name']} {one['type']} {one['nullable']} {one['default']}" for one in about]

    def current():
        out.truncate(0)
        command.current(config)
        return out.getvalue().strip('\0\n')

    @check
    def upgrade_first():
        command.upgrade(config, 'a1')
        return columns('al_readings')

    @check
    def upgrade_second():
        command.upgrade(config, 'b2')
        return columns('al_readings')

    @check
    def upgrade_head():
        command.upgrade(config, 'head')
        return columns('al_measures')

    @check
    def current_head():
        return current()

    @check
    def again():
        command.upgrade(config, 'head')
        return current()

    @check
    def rows():
        with engine.connect() as connection:
            text = 'SELECT id, place, celsius FROM al_measures'
            return [[str(cell) for cell in row] for row in connection.execute(sa.text(text))]

    @check
    def autogenerate():
        with engine.connect() as connection:
            migration = MigrationContext.configure(connection)
            changes = compare_metadata(migration, sa.MetaData())
            removed = [one for one in changes if one[0] == 'remove_table']
            return 'al_measures' in [one[1].name for one in removed]

    @check
    def downgrade():
        command.downgrade(config, 'a1')
        return columns('al_readings')

    @check
    def downgrade_base():
        command.downgrade(config, 'base')
        return [sa.inspect(engine).has_table('al_readings'), current()]

    @check
    def stamp():
        command.stamp(config, 'head')
        return current()


def tool_django():
    import django
    from django.conf import settings
    from django.core.management import call_command

    database = {
        'ENGINE': 'django.db.backends.postgresql', 'NAME': 'qdb', 'USER': USER,
        'PASSWORD': PASSWORD, 'HOST': '127.0.0.1', 'PORT': str(PORT),
    }
    contrib = ['admin', 'auth', 'contenttypes', 'flatpages', 'messages', 'redirects', 'sessions',
               'sites', 'staticfiles']
    settings.configure(
        DATABASES={'default': database}, USE_TZ=True, SECRET_KEY='test', SITE_ID=1,
        INSTALLED_APPS=[f'django.contrib.{name}' for name in contrib],
        DEFAULT_AUTO_FIELD='django.db.models.BigAutoField',
    )
    django.setup()
    from django.contrib.auth.models import Group, Permission, User
    from django.contrib.contenttypes.models import ContentType
    from django.contrib.sessions.backends.db import SessionStore
    from django.contrib.sites.models import Site
    from django.db import connection, models
    from django.db.models import Count
    from django.db.models.functions import ExtractHour, TruncDay, TruncHour

    utc = datetime.timezone.utc

    class Reading(models.Model):
        at = models.DateTimeField()
        place = models.CharField(max_length=20)
        value = models.FloatField(null=True)

        class Meta:
            app_label = 'sites'
            db_table = 'dj_readings'
            indexes = [models.Index(fields=['place'], name='dj_place')]

    @check
    def migrate():
        call_command('migrate', verbosity=0)
        call_command('migrate', verbosity=0)
        tables = connection.introspection.table_names()
        return [name for name in tables if name.startswith(('auth_', 'django_'))]

    @check
    def show_migrations():
        import io

        out = io.StringIO()
        call_command('showmigrations', stdout=out)
        return [out.getvalue().count('[X]') > 15, out.getvalue().count('[ ]')]

    @check
    def users():
        user = User.objects.create_user('ada', 'ada@example.org', 'secret')
        user.is_staff = True
        user.save()
        found = User.objects.get(username='ada')
        return [found.pk == user.pk, found.is_staff, found.check_password('secret')]

    @check
    def relations():
        group = Group.objects.create(name='readers')
        group.permissions.add(Permission.objects.get(codename='view_user'))
        User.objects.get(username='ada').groups.add(group)
        found = User.objects.filter(groups__permissions__codename='view_user').distinct()
        return [user.username for user in found]

    @check
    def get_or_create():
        _, made = Site.objects.get_or_create(domain='example.net', defaults={'name': 'n'})
        _, again = Site.objects.get_or_create(domain='example.net', defaults={'name': 'n'})
        return [made, again, Site.objects.filter(domain='example.net').count()]

    @check
    def sessions():
        store = SessionStore()
        store['key'] = 'value'
        store.create()
        return SessionStore(session_key=store.session_key)['key']

    @check
    def content_types():
        ContentType.objects.clear_cache()
        return ContentType.objects.get_for_model(User).name

    @check
    def schema_editor():
        with connection.schema_editor() as editor:
            editor.create_model(Reading)
        with connection.schema_editor() as editor:
            note = models.TextField(null=True)
            note.set_attributes_from_name('note')
            editor.add_field(Reading, note)
        columns = connection.introspection.get_table_description(connection.cursor(), 'dj_readings')
        return [column.name for column in columns]

    @check
    def bulk_create():
        rows = [
            Reading(at=datetime.datetime(2026, 1, day, hour, tzinfo=utc), place=place, value=hour)
            for day in (1, 2) for hour in (6, 7) for place in ('north', 'south')
        ]
        Reading.objects.bulk_create(rows)
        return Reading.objects.count()

    @check
    def trunc_hour():
        query = Reading.objects.annotate(hour=TruncHour('at')).values('hour')
        counted = query.annotate(n=Count('id')).order_by('hour')
        return [f"{row['hour']} {row['n']}" for row in counted]

    @check
    def trunc_day_of_a_zone():
        import zoneinfo

        zone = zoneinfo.ZoneInfo('America/New_York')
        query = Reading.objects.annotate(day=TruncDay('at', tzinfo=zone)).values('day')
        counted = query.annotate(n=Count('id')).order_by('day')
        return [f"{row['day']} {row['n']}" for row in counted]

    @check
    def dates_and_hours():
        return [
            Reading.objects.filter(at__date='2026-01-02').count(),
            Reading.objects.filter(at__hour=7).count(),
            Reading.objects.filter(at__year=2026, at__month=1).count(),
            Reading.objects.annotate(h=ExtractHour('at')).filter(h__lt=7).count(),
        ]

    @check
    def date_times():
        return [
            [str(at) for at in Reading.objects.datetimes('at', 'hour')],
            [str(at) for at in Reading.objects.dates('at', 'day')],
        ]

    @check
    def updates():
        changed = Reading.objects.filter(place='north').update(value=models.F('value') + 1)
        deleted, _ = Reading.objects.filter(place='south', value=6).delete()
        sums = Reading.objects.aggregate(total=models.Sum('value'))
        return [changed, deleted, sums['total']]

    @check
    def inspect_db():
        import io

        out = io.StringIO()
        call_command('inspectdb', 'auth_user', stdout=out)
        return out.getvalue().count('models.') > 8

    @check
    def unmigrate():
        call_command('migrate', 'flatpages', 'zero', verbosity=0)
        return 'django_flatpage' in connection.introspection.table_names()


globals()[f'tool_{sys.argv[2]}']()
print(json.dumps(seen))
