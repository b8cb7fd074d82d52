// Object mappers for Node against a server: `mappers.mjs PORT MODULES`, where MODULES is the folder
// in which they are installed. Each mapper writes and reads rows and introspects the catalog.
// Prints one line of JSON.
import { createRequire } from 'node:module';
import { join } from 'node:path';

// Drivers treat times without a zone as local times.
process.env.TZ = 'UTC';
const [, , port, modules] = process.argv;
const installed = createRequire(join(modules, 'x.js'));
const server = { host: '127.0.0.1', port: Number(port), user: 'admin', password: 'quest' };
const WHEN = new Date('2024-01-01T00:00:00.001Z');

const { Client, Pool } = installed('pg');
const client = new Client({ ...server, database: 'qdb' });
await client.connect();
await client.query(
  'CREATE TABLE mapped (ts TIMESTAMP, s SYMBOL, v DOUBLE, l LONG, n DECIMAL(18,3)) TIMESTAMP(ts)',
);

async function knex() {
  const db = installed('knex')({ client: 'pg', connection: { ...server, database: 'qdb' } });
  await db('mapped').insert({ ts: WHEN, s: 'knex', v: 1.5 });
  const columns = await db('mapped').columnInfo();
  const out = {
    rows: await db('mapped').select('ts', 'v').where({ s: 'knex' }),
    there: [await db.schema.hasTable('mapped'), await db.schema.hasTable('nowhere')],
    column: await db.schema.hasColumn('mapped', 'v'),
    columns: Object.entries(columns).map(([name, { type }]) => `${name} ${type}`),
  };
  await db.destroy();
  return out;
}

async function typeorm() {
  const { DataSource, EntitySchema } = installed('typeorm');
  const entity = new EntitySchema({
    name: 'mapped',
    columns: {
      ts: { type: 'timestamp', primary: true },
      s: { type: 'varchar' },
      v: { type: 'float8' },
    },
  });
  const { user: username, ...rest } = server;
  const options = { ...rest, username, database: 'qdb', entities: [entity] };
  const source = new DataSource({ type: 'postgres', ...options });
  await source.initialize();
  const rows = source.getRepository('mapped');
  await rows.insert({ ts: WHEN, s: 'typeorm', v: 2.5 });
  const table = await source.createQueryRunner().getTable('mapped');
  const out = {
    found: await rows.find({ where: { s: 'typeorm' }, take: 1, order: { ts: 'ASC' } }),
    columns: table.columns.map(({ name, type }) => `${name} ${type}`),
    others: [table.indices, table.foreignKeys, table.uniques, table.checks],
  };
  await source.destroy();
  return out;
}

async function sequelize() {
  const { DataTypes, Sequelize } = installed('sequelize');
  const { host, user, password } = server;
  const options = { host, port: server.port, dialect: 'postgres', logging: false };
  const source = new Sequelize('qdb', user, password, options);
  const columns = {
    ts: { type: DataTypes.DATE, primaryKey: true },
    s: DataTypes.STRING,
    v: DataTypes.DOUBLE,
  };
  const model = source.define('mapped', columns, { timestamps: false, tableName: 'mapped' });
  await model.create({ ts: WHEN, s: 'sequelize', v: 3.5 }, { returning: false });
  const about = source.getQueryInterface();
  const described = await about.describeTable('mapped');
  const { count, rows } = await model.findAndCountAll({ where: { s: 'sequelize' }, limit: 1 });
  const out = {
    count,
    rows: rows.map((row) => row.toJSON()),
    tables: (await about.showAllTables()).includes('mapped'),
    columns: Object.entries(described).map(([name, { type }]) => `${name} ${type}`),
    others: [await about.showIndex('mapped'), await about.showConstraint('mapped')],
  };
  await source.close();
  return out;
}

async function kysely() {
  const { Kysely, PostgresDialect } = installed('kysely');
  const pool = new Pool({ ...server, database: 'qdb' });
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
  await db.insertInto('mapped').values({ ts: WHEN, s: 'kysely', v: 4.5 }).execute();
  const tables = await db.introspection.getTables();
  const { columns } = tables.find(({ name }) => name === 'mapped');
  const out = {
    rows: await db.selectFrom('mapped').select(['s', 'v']).where('s', '=', 'kysely').execute(),
    columns: columns.map(({ name, dataType }) => `${name} ${dataType}`),
  };
  await db.destroy();
  return out;
}

const out = {};
for (const mapper of [knex, typeorm, sequelize, kysely]) {
  out[mapper.name] = await mapper();
}
await client.end();
process.stdout.write(`${JSON.stringify(out)}\n`);
