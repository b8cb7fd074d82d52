// Migration tools for Node: `migrations.mjs PORT MODULES TOOL`, where MODULES is the folder in
// which they are installed. Prints one line of JSON with the result or error of each check.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

// Drivers treat times without a zone as local times.
process.env.TZ = 'UTC';
const [, , port, modules, tool] = process.argv;
const installed = createRequire(join(modules, 'x.js'));
const server = { host: '127.0.0.1', port: Number(port), user: 'admin', password: 'quest' };
const connection = { ...server, database: 'qdb' };
const NOON = new Date('2026-01-01T12:00:00Z');

const seen = {};
/** Runs one check. If it fails, the next check still runs. */
async function check(name, work) {
  try {
    seen[name] = await work();
  } catch (error) {
    // Drizzle's error contains the statement; its cause contains the server's message.
    seen[name] = `${error.name}: ${(error.cause ?? error).message}`;
  }
}

function writeKnexMigrations(folder) {
  const migration = (name, up, down) => {
    const text = `exports.up = async (knex) => {${up}};\nexports.down = async (knex) => {${down}};`;
    writeFileSync(join(folder, `${name}.cjs`), text);
  };
  migration(
    '1_places',
    `await knex.schema.createTable('kn_places', (t) => {
      t.increments('id');
      t.string('name', 40).notNullable().unique();
      t.timestamps(true, true);
      t.index(['name']);
    });`,
    `await knex.schema.dropTable('kn_places');`,
  );
  migration(
    '2_readings',
    `await knex.schema.createTable('kn_readings', (t) => {
      t.timestamp('at', { useTz: false }).notNullable();
      t.integer('place_id').notNullable().references('id').inTable('kn_places').onDelete('CASCADE');
      t.double('value');
      t.primary(['at', 'place_id']);
    });
    await knex.schema.alterTable('kn_places', (t) => {
      t.decimal('height', 10, 2).defaultTo(1.5);
      t.string('note').nullable();
      t.renameColumn('name', 'title');
    });
    await knex.schema.alterTable('kn_places', (t) => { t.string('note', 80).alter(); });`,
    `await knex.schema.alterTable('kn_places', (t) => {
      t.renameColumn('title', 'name');
      t.dropColumns('height', 'note');
    });
    await knex.schema.dropTable('kn_readings');`,
  );
}

async function knex() {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-knex-'));
  writeKnexMigrations(folder);
  const db = installed('knex')({
    client: 'pg',
    connection,
    migrations: { directory: folder, loadExtensions: ['.cjs'] },
  });
  const tables = async () => {
    const there = [];
    for (const name of ['kn_places', 'kn_readings', 'knex_migrations']) {
      there.push(await db.schema.hasTable(name));
    }
    return there;
  };
  await check('latest', async () => (await db.migrate.latest())[1]);
  await check('tables', tables);
  await check('again', async () => (await db.migrate.latest())[1]);
  await check('list', async () => (await db.migrate.list()).map((one) => one.length));
  await check('insert', async () => {
    const [{ id }] = await db('kn_places').insert({ title: 'north' }).returning('id');
    const rows = [1, 2].map((value) => ({ at: NOON, place_id: value, value }));
    await db('kn_readings').insert(rows);
    return [typeof Number(id), (await db('kn_readings').count())[0].count];
  });
  await check('merge', async () => {
    const row = { at: NOON, place_id: 1, value: 9 };
    await db('kn_readings').insert(row).onConflict(['at', 'place_id']).merge();
    await db('kn_readings')
      .insert({ ...row, value: 7 })
      .onConflict(['at', 'place_id'])
      .ignore();
    return db('kn_readings').select('place_id', 'value').orderBy('place_id');
  });
  await check('transaction', () =>
    db.transaction(async (block) => {
      await block('kn_places').insert({ title: 'south' });
      return (await block('kn_places').whereIn('title', ['north', 'south'])).length;
    }),
  );
  await check('columns', async () =>
    Object.entries(await db('kn_places').columnInfo()).map(([name, { type, nullable }]) =>
      [name, type, nullable].join(' '),
    ),
  );
  await check('rollback', async () => (await db.migrate.rollback(undefined, true))[1].length);
  await check('gone', tables);
  await db.destroy();
  rmSync(folder, { recursive: true });
}

function typeormModels(EntitySchema) {
  const place = (columns = {}) =>
    new EntitySchema({
      name: 'to_place',
      columns: {
        id: { type: 'int', primary: true, generated: true },
        name: { type: 'varchar', length: 40, unique: true },
        created: { type: 'timestamp', createDate: true },
        ...columns,
      },
      relations: {
        readings: { type: 'one-to-many', target: 'to_reading', inverseSide: 'place' },
      },
    });
  const reading = new EntitySchema({
    name: 'to_reading',
    columns: {
      at: { type: 'timestamp', primary: true },
      sensor: { type: 'varchar', primary: true },
      value: { type: 'float8', nullable: true },
    },
    indices: [{ columns: ['value'] }],
    relations: {
      place: { type: 'many-to-one', target: 'to_place', joinColumn: true, nullable: true },
    },
  });
  return { place, reading };
}

async function typeorm() {
  const { DataSource, EntitySchema } = installed('typeorm');
  const { place, reading } = typeormModels(EntitySchema);
  const { user: username, ...rest } = connection;
  const open = (first) =>
    new DataSource({
      type: 'postgres',
      ...rest,
      username,
      entities: [first, reading],
    }).initialize();
  const source = await open(place());
  await check('synchronize', () => source.synchronize());
  await check('again', () => source.synchronize());
  await check('pending', async () => {
    const { upQueries } = await source.driver.createSchemaBuilder().log();
    return upQueries.map(({ query }) => query);
  });
  const places = source.getRepository('to_place');
  const readings = source.getRepository('to_reading');
  await check('save', async () => {
    const north = await places.save({ name: 'north' });
    await readings.save([
      { at: NOON, sensor: 'a', value: 1.5, place: north },
      { at: NOON, sensor: 'b', value: 2.5, place: north },
    ]);
    return [Number(north.id) > 0, north.created instanceof Date];
  });
  await check('relation', async () => {
    const found = await places.find({ relations: { readings: true } });
    return found.map(({ name, readings: of }) => [name, of.length]);
  });
  await check('upsert', async () => {
    await readings.upsert([{ at: NOON, sensor: 'a', value: 9, place: null }], ['at', 'sensor']);
    return readings.find({ order: { sensor: 'ASC' } });
  });
  await check('builder', () =>
    readings
      .createQueryBuilder('r')
      .select("date_trunc('hour', r.at)", 'hour')
      .addSelect('count(*)', 'n')
      .groupBy("date_trunc('hour', r.at)")
      .getRawMany(),
  );
  await source.destroy();
  await check('changed', async () => {
    const changed = await open(place({ height: { type: 'float8', default: 1.5 } }));
    await changed.synchronize();
    const table = await changed.createQueryRunner().getTable('to_place');
    const columns = table.columns.map(({ name, type }) => `${name} ${type}`);
    await changed.destroy();
    return columns;
  });
  await check('dropped', async () => {
    const last = await open(place());
    await last.synchronize(true);
    const count = await last.getRepository('to_place').count();
    await last.dropDatabase();
    await last.destroy();
    return count;
  });
}

async function sequelize() {
  const { DataTypes, Sequelize, Op } = installed('sequelize');
  const { host, user, password } = server;
  const options = { host, port: server.port, dialect: 'postgres', logging: false };
  const db = new Sequelize('qdb', user, password, options);
  const Place = db.define(
    'sq_place',
    {
      name: { type: DataTypes.STRING(40), allowNull: false, unique: true },
      height: { type: DataTypes.DECIMAL(10, 2), defaultValue: 1.5 },
    },
    { indexes: [{ fields: ['height'] }] },
  );
  const Reading = db.define(
    'sq_reading',
    {
      at: { type: DataTypes.DATE, primaryKey: true },
      sensor: { type: DataTypes.STRING, primaryKey: true },
      value: DataTypes.DOUBLE,
    },
    { timestamps: false },
  );
  Place.hasMany(Reading);
  Reading.belongsTo(Place);
  await check('sync', async () => {
    await db.sync();
    await db.sync();
    return (await db.getQueryInterface().showAllTables()).filter((name) => name.startsWith('sq_'));
  });
  await check('create', async () => {
    const place = await Place.create({ name: 'north' });
    await Reading.bulkCreate([
      { at: NOON, sensor: 'a', value: 1.5, sqPlaceId: place.id },
      { at: NOON, sensor: 'b', value: 2.5, sqPlaceId: place.id },
    ]);
    return [Number(place.id) > 0, place.height];
  });
  await check('include', async () => {
    const found = await Place.findAll({ include: Reading });
    return found.map((place) => [place.name, place.sq_readings.length]);
  });
  await check('upsert', async () => {
    await Reading.upsert({ at: NOON, sensor: 'a', value: 9 });
    const rows = await Reading.findAll({ order: ['sensor'], where: { value: { [Op.gt]: 2 } } });
    return rows.map(({ sensor, value }) => [sensor, value]);
  });
  await check('bulkUpsert', async () => {
    const rows = [{ at: NOON, sensor: 'b', value: 8 }];
    await Reading.bulkCreate(rows, { updateOnDuplicate: ['value'] });
    await Reading.bulkCreate([{ ...rows[0], value: 7 }], { ignoreDuplicates: true });
    return (await Reading.findOne({ where: { sensor: 'b' } })).value;
  });
  await check('update', async () => {
    await Place.update({ height: 2.5 }, { where: { name: 'north' } });
    return (await Place.findOne({ where: { name: 'north' } })).height;
  });
  await check('alter', async () => {
    await db.sync({ alter: true });
    return Object.keys(await db.getQueryInterface().describeTable('sq_places'));
  });
  await check('force', async () => {
    await db.sync({ force: true });
    return Place.count();
  });
  await check('drop', async () => {
    await db.drop();
    return (await db.getQueryInterface().showAllTables()).filter((name) => name.startsWith('sq_'));
  });
  await db.close();
}

const KYSELY_MIGRATIONS = {
  1: {
    up: async (on) => {
      await on.schema
        .createTable('ky_readings')
        .addColumn('at', 'timestamp', (column) => column.notNull())
        .addColumn('sensor', 'varchar(20)', (column) => column.notNull())
        .addColumn('value', 'double precision', (column) => column.defaultTo(1.5))
        .addPrimaryKeyConstraint('ky_key', ['at', 'sensor'])
        .execute();
      await on.schema.createIndex('ky_index').on('ky_readings').column('value').execute();
    },
    down: (on) => on.schema.dropTable('ky_readings').execute(),
  },
  2: {
    up: async (on) => {
      await on.schema.alterTable('ky_readings').addColumn('id', 'serial').execute();
      await on.schema.alterTable('ky_readings').renameColumn('value', 'celsius').execute();
    },
    down: async (on) => {
      await on.schema.alterTable('ky_readings').renameColumn('celsius', 'value').execute();
      await on.schema.alterTable('ky_readings').dropColumn('id').execute();
    },
  },
};

async function kysely() {
  const { Kysely, Migrator, PostgresDialect, sql } = installed('kysely');
  const pool = new (installed('pg').Pool)(connection);
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => KYSELY_MIGRATIONS } });
  const outcome = ({ error, results }) => {
    if (error) {
      throw error;
    }
    return results.map(({ migrationName, status }) => `${migrationName} ${status}`);
  };
  await check('latest', async () => outcome(await migrator.migrateToLatest()));
  await check('again', async () => outcome(await migrator.migrateToLatest()));
  await check('insert', async () => {
    const row = { at: NOON, sensor: 'a', celsius: 2 };
    await db.insertInto('ky_readings').values(row).execute();
    await db
      .insertInto('ky_readings')
      .values({ ...row, celsius: 9 })
      .onConflict((on) =>
        on
          .columns(['at', 'sensor'])
          .doUpdateSet(({ ref }) => ({ celsius: ref('excluded.celsius') })),
      )
      .execute();
    await db
      .insertInto('ky_readings')
      .values([
        { ...row, celsius: 7 },
        { at: NOON, sensor: 'b', celsius: 3 },
      ])
      .onConflict((on) => on.columns(['at', 'sensor']).doNothing())
      .execute();
    return db.selectFrom('ky_readings').select(['sensor', 'celsius']).orderBy('sensor').execute();
  });
  await check('grouped', () =>
    db
      .selectFrom('ky_readings')
      .select([sql`date_trunc('hour', at)`.as('hour'), ({ fn }) => fn.countAll().as('n')])
      .groupBy('hour')
      .execute(),
  );
  await check('tables', async () => {
    const tables = await db.introspection.getTables();
    const table = tables.find(({ name }) => name === 'ky_readings');
    return table.columns.map(({ name, dataType, isNullable, hasDefaultValue }) =>
      [name, dataType, isNullable, hasDefaultValue].join(' '),
    );
  });
  await check('down', async () => [
    ...outcome(await migrator.migrateDown()),
    ...outcome(await migrator.migrateDown()),
  ]);
  await db.destroy();
}

/** The schema file that Drizzle reads and that the checks use. */
const DRIZZLE_SCHEMA = `const pg = require('drizzle-orm/pg-core');
exports.places = pg.pgTable('dr_places', {
  id: pg.serial('id').primaryKey(),
  name: pg.varchar('name', { length: 40 }).notNull(),
  height: pg.numeric('height', { precision: 10, scale: 2 }).default('1.5'),
  open: pg.boolean('open').default(true),
});
exports.readings = pg.pgTable(
  'dr_readings',
  {
    at: pg.timestamp('at', { precision: 6 }).notNull(),
    sensor: pg.text('sensor').notNull(),
    value: pg.doublePrecision('value'),
  },
  (table) => [pg.primaryKey({ columns: [table.at, table.sensor] })],
);
`;

const DRIZZLE_MIGRATIONS = [
  `CREATE TABLE "dr_notes" ("id" serial PRIMARY KEY NOT NULL, "text" text NOT NULL);`,
  `ALTER TABLE "dr_notes" ADD COLUMN "at" timestamp DEFAULT now() NOT NULL;
--> statement-breakpoint
CREATE INDEX "dr_notes_at" ON "dr_notes" USING btree ("at");`,
];

/** Writes a folder as `drizzle-kit generate` does, with the schema and the settings. */
function writeDrizzle(folder) {
  writeFileSync(join(folder, 'schema.cjs'), DRIZZLE_SCHEMA);
  mkdirSync(join(folder, 'meta'));
  const entries = DRIZZLE_MIGRATIONS.map((text, idx) => {
    const tag = `000${idx}_notes`;
    writeFileSync(join(folder, `${tag}.sql`), text);
    return { idx, version: '7', when: 1_767_268_800_000 + idx, tag, breakpoints: true };
  });
  const journal = { version: '7', dialect: 'postgresql', entries };
  writeFileSync(join(folder, 'meta', '_journal.json'), JSON.stringify(journal));
  const { database, host, password, user } = connection;
  const dbCredentials = { host, port: connection.port, user, password, database, ssl: false };
  const settings = { dialect: 'postgresql', schema: './schema.cjs', dbCredentials };
  const tablesFilter = ['dr_*'];
  const text = JSON.stringify({ ...settings, out: './pulled', tablesFilter });
  writeFileSync(join(folder, 'drizzle.config.json'), text);
}

async function drizzleKit(folder, ...args) {
  const program = join(modules, 'drizzle-kit', 'bin.cjs');
  const words = [program, ...args, '--config', 'drizzle.config.json'];
  const ran = promisify(execFile)(process.execPath, words, { cwd: folder });
  const { stdout } = await ran.catch(({ stderr }) => {
    throw new Error(stderr.match(/^.*error: .*$/im)?.[0] ?? `drizzle-kit ${args[0]} failed`);
  });
  return stdout;
}

async function drizzleRows(db, { places, readings }) {
  const { asc, avg, eq, gt, sql } = installed('drizzle-orm');
  await check('insert_with_defaults', () =>
    db.insert(places).values({ name: 'north' }).returning({ height: places.height }),
  );
  await check('insert_many', async () => {
    const rows = ['a', 'b', 'c'].map((sensor, value) => ({ at: NOON, sensor, value }));
    return (await db.insert(readings).values(rows)).rowCount;
  });
  await check('select', () =>
    db.select().from(readings).where(gt(readings.value, 0)).orderBy(asc(readings.sensor)),
  );
  await check('upsert', async () => {
    const row = { at: NOON, sensor: 'a', value: 9 };
    const target = [readings.at, readings.sensor];
    const set = { value: sql`excluded.value` };
    await db.insert(readings).values(row).onConflictDoUpdate({ target, set });
    await db.insert(readings).values({ at: NOON, sensor: 'b' }).onConflictDoNothing();
    return db.select({ value: readings.value }).from(readings).orderBy(asc(readings.sensor));
  });
  await check('group', () => {
    const hour = sql`to_char(${readings.at}, 'HH24:MI')`.as('hour');
    return db
      .select({ hour, mean: avg(readings.value) })
      .from(readings)
      .groupBy(hour);
  });
  await check('join', () =>
    db
      .select({ name: places.name, sensor: readings.sensor })
      .from(places)
      .innerJoin(readings, eq(readings.value, places.id))
      .limit(1),
  );
  await check('query_api', () =>
    db.query.places.findMany({ columns: { name: true, open: true }, limit: 1 }),
  );
  await check('prepared', async () => {
    const byName = db
      .select()
      .from(places)
      .where(eq(places.name, sql.placeholder('name')));
    const prepared = byName.prepare('dr_by_name');
    return [await prepared.execute({ name: 'north' }), await prepared.execute({ name: 'x' })].map(
      ({ length }) => length,
    );
  });
  await check('transaction', async () => {
    const undone = db.transaction(async (block) => {
      await block.insert(readings).values({ at: NOON, sensor: 'gone' });
      await block.transaction((inner) => inner.insert(readings).values({ at: NOON, sensor: 'in' }));
      block.rollback();
    });
    await undone.catch(() => null);
    return db.$count(readings);
  });
  await check('update', async () => {
    const changed = await db.update(places).set({ open: false }).where(eq(places.name, 'north'));
    const [place] = await db.select().from(places);
    return [changed.rowCount, place.open, place.height];
  });
  await check('delete', () =>
    db.delete(readings).where(eq(readings.sensor, 'c')).returning({ sensor: readings.sensor }),
  );
}

async function drizzle() {
  // The folder is next to the packages, so that `require` in the schema finds them.
  const folder = mkdtempSync(join(modules, '..', 'drizzle-'));
  writeDrizzle(folder);
  const schema = createRequire(join(folder, 'x.js'))('./schema.cjs');
  const pool = new (installed('pg').Pool)(connection);
  const db = installed('drizzle-orm/node-postgres').drizzle(pool, { schema });
  const { migrate } = installed('drizzle-orm/node-postgres/migrator');
  await check('push', async () =>
    (await drizzleKit(folder, 'push', '--force')).includes('applied'),
  );
  await check('push_again', async () =>
    (await drizzleKit(folder, 'push', '--force')).includes('No changes detected'),
  );
  await check('export', async () => {
    for (const table of ['dr_places', 'dr_readings']) {
      await db.execute(`DROP TABLE IF EXISTS ${table}`);
    }
    const text = await drizzleKit(folder, 'export');
    const statements = text.slice(text.indexOf('CREATE')).split(/(?<=;)\n/);
    for (const statement of statements.filter((one) => one.trim() !== '')) {
      await db.execute(statement);
    }
    return true;
  });
  await drizzleRows(db, schema);
  await check('pull', async () => /2.* tables/.test(await drizzleKit(folder, 'pull')));
  await check('migrate', async () => {
    await migrate(db, { migrationsFolder: folder });
    return (await db.execute('SELECT count(*) AS n FROM drizzle.__drizzle_migrations')).rows;
  });
  await check('migrate_in_public', async () => {
    await db.execute('DROP TABLE IF EXISTS dr_notes');
    const settings = { migrationsFolder: folder, migrationsSchema: 'public' };
    await migrate(db, settings);
    await migrate(db, settings);
    return (await db.execute('SELECT count(*) AS n FROM __drizzle_migrations')).rows;
  });
  await check('drop', async () => {
    for (const name of ['dr_places', 'dr_readings', 'dr_notes', '__drizzle_migrations']) {
      await db.execute(`DROP TABLE IF EXISTS ${name}`);
    }
    return true;
  });
  // On PostgreSQL the schema exists at this point.
  await db.execute('DROP SCHEMA IF EXISTS drizzle CASCADE').catch(() => null);
  await pool.end();
  rmSync(folder, { recursive: true });
}

await { knex, typeorm, sequelize, kysely, drizzle }[tool]();
process.stdout.write(`${JSON.stringify(seen)}\n`);
process.exit();
