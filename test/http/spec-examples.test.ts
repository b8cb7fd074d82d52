/**
 * Every promise in the HTTP documentation, tested with the curl command that a reader would use:
 * documented paths, parameters, defaults and bodies.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

const run = promisify(execFile);

let server: TestServer;
let folder: string;

test.before(async () => {
  server = await startTestServer();
  folder = await mkdtemp(join(tmpdir(), 'tidemark-spec-'));
  const { host } = new URL(server.url);
  await writeFile(join(folder, '.curlrc'), `connect-to = "localhost:9000:${host}"\nsilent\n`);
  await writeFile(
    join(folder, 'trips.csv'),
    'city,passengers,fare,when\nOslo,1,10.5,2024-01-01T10:00:00.000000Z\n' +
      'Rome,2,20.25,2024-01-01T11:00:00.000000Z\nOslo,3,,2024-02-01T10:00:00.000000Z\n',
  );
  await writeFile(
    join(folder, 'own.csv'),
    'at,v\n2024-01-01 - 10:30:00,1\n2024-01-02 - 10:30:00,2\n',
  );
  await writeFile(join(folder, 'one.tsv'), 'a\t1\n');
  await writeFile(join(folder, 'bad.csv'), 'n,s\n1,a\n2,b\nx,c\n4,d\n');
  await writeFile(join(folder, 'long.csv'), 'n,s\n1,a\n2,b,extra\n3,c\n');
});

test.after.always(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Output of a shell command. */
async function sh(command: string): Promise<string> {
  const options = { cwd: folder, env: { ...process.env, CURL_HOME: folder } };
  const { stdout } = await run('sh', ['-e', '-c', command], options);
  return stdout.replaceAll('\r\n', '\n');
}

async function json(command: string): Promise<Record<string, unknown>> {
  return JSON.parse(await sh(command)) as Record<string, unknown>;
}

async function dataset(sql: string): Promise<unknown> {
  const { dataset } = await json(
    `curl -G --data-urlencode "query=${sql}" http://localhost:9000/exec`,
  );
  return dataset;
}

test.serial('/imp returns text by default and JSON with fmt=json', async (t) => {
  const text = await sh("curl -F data=@trips.csv 'http://localhost:9000/imp'");
  for (const label of ['Location:', 'Pattern', 'Locale', 'Errors', 'Partition by', 'Timestamp']) {
    t.true(text.includes(label), label);
  }
  t.regex(text, /Rows handled.* 3 /);
  t.regex(text, /Rows imported.* 3 /);
  const answer = await json("curl -F data=@trips.csv 'http://localhost:9000/imp?fmt=json'");
  t.deepEqual(
    [answer['status'], answer['rowsRejected'], answer['rowsImported'], answer['header']],
    ['OK', 0, 3, true],
  );
  t.deepEqual(answer['columns'], [
    { name: 'city', type: 'VARCHAR', size: 0, errors: 0 },
    { name: 'passengers', type: 'INT', size: 4, errors: 0 },
    { name: 'fare', type: 'DOUBLE', size: 8, errors: 0 },
    { name: 'when', type: 'TIMESTAMP', size: 8, errors: 0 },
  ]);
  t.deepEqual(
    await dataset("select count() from 'trips.csv'"),
    [[6]],
    'the file name is the table name',
  );
});

test.serial(
  '/imp applies name, overwrite, timestamp, partitionBy and table settings',
  async (t) => {
    const url = 'http://localhost:9000/imp?fmt=json&name=trips&overwrite=true';
    const settings = 'timestamp=when&partitionBy=MONTH&o3MaxLag=10000000&maxUncommittedRows=1000';
    const imports = `curl -F data=@trips.csv '${url}&${settings}'`;
    for (const round of [1, 2]) {
      const answer = await json(imports);
      t.deepEqual(
        [answer['timestamp'], answer['partitionBy']],
        ['when', 'MONTH'],
        `round ${round}`,
      );
      t.deepEqual(await dataset('select count() from trips'), [[3]]);
    }
    t.deepEqual(
      await dataset("select maxUncommittedRows, o3MaxLag from tables() where table_name = 'trips'"),
      [[1000, 10_000_000]],
    );
  },
);

test.serial('/imp applies schema, delimiter, forceHeader and create', async (t) => {
  const pattern = '[{"name":"at","type":"TIMESTAMP","pattern":"yyyy-MM-dd - HH:mm:ss"}]';
  const own = `curl -F schema='${pattern}' -F data=@own.csv`;
  const answer = await json(`${own} 'http://localhost:9000/imp?name=own&timestamp=at&fmt=json'`);
  t.is(answer['status'], 'OK');
  t.deepEqual(await dataset('select * from own'), [
    ['2024-01-01T10:30:00.000000Z', 1],
    ['2024-01-02T10:30:00.000000Z', 2],
  ]);
  const detected = await json(
    "curl -F data=@own.csv 'http://localhost:9000/imp?name=text&fmt=json'",
  );
  t.is(
    (detected['columns'] as { type: string }[])[0]?.type,
    'VARCHAR',
    'the type detected without a pattern',
  );
  const few = await json("curl -F data=@one.tsv 'http://localhost:9000/imp?name=one&fmt=json'");
  t.deepEqual(few, { status: 'not enough lines [table=one]' });
  const one = await json(
    "curl -F data=@one.tsv 'http://localhost:9000/imp?name=one&fmt=json&delimiter=%09'",
  );
  t.deepEqual([one['status'], one['rowsImported'], one['header']], ['OK', 1, false]);
  const forced = await json(
    "curl -F data=@own.csv 'http://localhost:9000/imp?name=forced&fmt=json&forceHeader=true'",
  );
  t.deepEqual([forced['header'], forced['rowsImported']], [true, 2]);
  const refused = await json(
    "curl -F data=@own.csv 'http://localhost:9000/imp?name=nowhere&fmt=json&create=false'",
  );
  t.regex(String(refused['status']), /table does not exist \[table=nowhere\]/);
});

test.serial('/imp applies atomicity and skipLev', async (t) => {
  const schema = `-F schema='[{"name":"n","type":"INT"}]'`;
  for (const [atomicity, imported, rejected, count] of [
    ['skipCol', 4, 0, 4],
    ['skipRow', 3, 1, 3],
  ] as const) {
    const query = `name=bad_${atomicity}&fmt=json&forceHeader=true&atomicity=${atomicity}`;
    const answer = await json(
      `curl ${schema} -F data=@bad.csv 'http://localhost:9000/imp?${query}'`,
    );
    const [column] = answer['columns'] as { errors: number }[];
    t.deepEqual(
      [answer['status'], answer['rowsImported'], answer['rowsRejected'], column?.errors],
      ['OK', imported, rejected, 1],
    );
    t.deepEqual(await dataset(`select count() from bad_${atomicity}`), [[count]]);
  }
  const query = 'name=bad_abort&fmt=json&forceHeader=true&atomicity=abort';
  const answer = await json(`curl ${schema} -F data=@bad.csv 'http://localhost:9000/imp?${query}'`);
  t.not(answer['status'], 'OK');
  t.is(await sh("curl 'http://localhost:9000/chk?j=bad_abort'"), 'Does not exist\n');
  for (const [skipLev, imported] of [
    ['false', 2],
    ['true', 3],
  ] as const) {
    const url = `http://localhost:9000/imp?name=lev_${skipLev}&fmt=json&delimiter=,`;
    const long = await json(`curl -F data=@long.csv '${url}&forceHeader=true&skipLev=${skipLev}'`);
    t.is(long['rowsImported'], imported, JSON.stringify(long));
  }
});

test.serial('/exec returns the documented bodies for queries and other statements', async (t) => {
  const exec = (sql: string, more = ''): Promise<Record<string, unknown>> =>
    json(`curl -G --data-urlencode "query=${sql}" ${more} http://localhost:9000/exec`);
  t.deepEqual(await exec('create table t (x long, ts timestamp) timestamp(ts)'), { ddl: 'OK' });
  await exec("insert into t values (1, '2024-01-01'), (2, '2024-01-02'), (3, '2024-01-03')");
  const updated = await exec('update t set x = 4 where x = 3');
  t.deepEqual([updated['ddl'], updated['updated']], ['OK', 1]);
  const all = await exec('select x, ts from t', '-d count=true -d timings=true -d explain=true');
  t.deepEqual(all['columns'], [
    { name: 'x', type: 'LONG' },
    { name: 'ts', type: 'TIMESTAMP' },
  ]);
  t.deepEqual([all['query'], all['timestamp'], all['count']], ['select x, ts from t', 1, 3]);
  t.deepEqual(all['explain'], { jitCompiled: false });
  const timings = all['timings'] as Record<string, number>;
  for (const name of ['compiler', 'count', 'execute']) {
    t.is(typeof timings[name], 'number', name);
  }
  const rowsOf = async (limit: string): Promise<unknown> =>
    (await exec('select x from t', `-d limit=${limit}`))['dataset'];
  t.deepEqual(await rowsOf('2'), [[1], [2]]);
  t.deepEqual(await rowsOf('1,2'), [[1], [2]]);
  t.deepEqual(await rowsOf('2,3'), [[2], [4]]);
  t.deepEqual(Object.keys(await exec('select x from t', '-d nm=true')), ['dataset', 'count']);
  t.deepEqual((await exec('select x from t', '-d quoteLargeNum=true'))['dataset'], [
    ['1'],
    ['2'],
    ['4'],
  ]);
  t.deepEqual(
    (await exec('select x\nfrom t\nlimit 1'))['dataset'],
    [[1]],
    'the statement spans several lines',
  );
  t.deepEqual((await exec('select 1', "-H 'Statement-Timeout: 5000'"))['dataset'], [[1]]);
  const wrong = await sh(
    'curl -w " %{http_code}" -G --data-urlencode "query=select y from t" ' +
      'http://localhost:9000/exec',
  );
  t.is(wrong, '{"query":"select y from t","error":"Invalid column: y","position":7} 400');
});

test.serial('/exp returns CSV, row ranges, and Parquet with every parameter', async (t) => {
  const exp = (more: string): Promise<string> =>
    sh(`curl -G --data-urlencode "query=select x from t" ${more} http://localhost:9000/exp`);
  t.is(await exp(''), '"x"\n1\n2\n4\n');
  t.is(await exp('-d limit=2'), '"x"\n1\n2\n');
  t.is(await exp('-d limit=0,2'), '"x"\n1\n2\n');
  t.is(await exp('-d limit=1,2'), '"x"\n2\n');
  t.is(await exp('-d limit=-2'), '"x"\n2\n4\n');
  t.is(await exp('-d nm=true'), '1\n2\n4\n');
  const magic = async (parameters: string): Promise<string> => {
    const query = '--data-urlencode "query=select * from t"';
    await sh(`curl -G ${query} -d fmt=parquet ${parameters} -o out http://localhost:9000/exp`);
    return (await readFile(join(folder, 'out'))).toString('latin1', 0, 4);
  };
  for (const parameters of [
    '',
    ...['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'LZ4', 'ZSTD', 'LZ4_RAW', 'BROTLI'].map(
      (codec) => `-d compression_codec=${codec}`,
    ),
    '-d compression_level=3',
    '-d row_group_size=100000',
    '-d data_page_size=1048576',
    '-d statistics_enabled=false',
    '-d parquet_version=1',
    '-d raw_array_encoding=true',
    '-d partition_by=NONE',
  ]) {
    t.is(await magic(parameters), 'PAR1', parameters);
  }
  for (const unit of ['HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR']) {
    t.is(await magic(`-d partition_by=${unit}`), 'PK\u0003\u0004', unit);
  }
  t.regex(await exp('-d fmt=parquet -d compression_codec=LZO'), /invalid compression codec\[LZO\]/);
});
