/** Import previews: show the effect of an import without writing anything. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

let harness: TestServer;
test.before(async () => {
  harness = await startTestServer({ set: ['log.level=error'] });
});
test.after.always(() => harness.stop());

async function preview(body: string, query = ''): Promise<[number, Record<string, unknown>]> {
  const target = `${harness.url}/api/v1/import/preview?name=weather.csv${query}`;
  const response = await fetch(target, { method: 'POST', body });
  return [response.status, (await response.json()) as Record<string, unknown>];
}

test('a text file is described by its columns and first values', async (t) => {
  t.deepEqual(await preview('\ufeffcity;at\r\nOslo;2026-01-01\r\nRome;2026-01-02\r\n'), [
    200,
    {
      table: 'weather',
      delimiter: ';',
      header: true,
      headerBytes: 12,
      rows: 2,
      columns: [
        { name: 'city', type: 'VARCHAR', couldBeTimestamp: false, values: ['Oslo', 'Rome'] },
        {
          name: 'at',
          type: 'DATE',
          trial: { read: 2, of: 2 },
          couldBeTimestamp: true,
          values: ['2026-01-01', '2026-01-02'],
        },
      ],
    },
  ]);
});

test('the header length is returned in bytes and is 0 without a header', async (t) => {
  const [, found] = await preview('"Größe\n1",v\n1,2\n3,4\n');
  t.is(found['headerBytes'], Buffer.byteLength('"Größe\n1",v\n'));
  const [, none] = await preview('1,2\n3,4\n', '&header=false');
  t.is(none['headerBytes'], 0);
});

test('an invalid header name is returned with the column name derived from it', async (t) => {
  const [, found] = await preview('city,"Time ""of"" day",sensor-id\nOslo,10:30,1\nRome,11:00,2\n');
  const columns = found['columns'] as readonly { name: string; header?: string }[];
  t.deepEqual(
    columns.map(({ name, header }) => [name, header]),
    [
      ['city', undefined],
      ['TimeOfDay', 'Time "of" day'],
      ['sensorId', 'sensor-id'],
    ],
  );
});

test('a type that fits most values is suggested, with the first value that fails', async (t) => {
  const lines = Array.from({ length: 20 }, (_, row) => (row === 4 ? 'n/a,x' : `${row}.5,x`));
  const [, found] = await preview(`v,w\n${lines.join('\n')}\n`, '&header=true');
  const columns = found['columns'] as Record<string, unknown>[];
  t.deepEqual(columns[0]?.['near'], {
    type: 'DOUBLE',
    nullTexts: ['n/a'],
    misfits: 1,
    first: 'n/a',
    row: 5,
  });
});

test('unstructured text is refused with the same messages as an import', async (t) => {
  t.deepEqual(await preview('alone'), [400, { error: 'not enough lines [table=weather]' }]);
  t.deepEqual(await preview('a,a\n1,2\n3,4\n', '&header=true'), [
    400,
    { error: 'duplicate column name found [no=1,name=a]' },
  ]);
});

test('a last line without a line break counts only if the file is complete', async (t) => {
  t.is((await preview('a,b\n1,2\n3,4', '&header=true'))[1]['rows'], 1);
  t.is((await preview('a,b\n1,2\n3,4', '&header=true&whole=true'))[1]['rows'], 2);
});

test('a header over string columns is inferred and marked as a guess', async (t) => {
  const header = async (body: string): Promise<unknown[]> => {
    const [, found] = await preview(body, '&whole=true');
    return [found['header'], found['headerIsGuess'], found['rows']];
  };
  t.deepEqual(await header('name,city\nAnn Lee,Oslo\nBob Ray,Rome\n'), [true, true, 2]);
  t.deepEqual(await header('Side,Place\nbuy,Oslo\nsell,Rome\nbuy,Oslo\nbuy,Rome\n'), [
    true,
    true,
    4,
  ]);
  t.deepEqual(await header('station,v\noslo,1\n'), [true, undefined, 1]);
  t.deepEqual(await header('Ann,Oslo\nBob,Rome\nEve,Oslo\n'), [false, true, 3]);
  t.deepEqual(await header('Ann,Bern\nBob,Rome\nEve,Graz\n'), [false, true, 3]);
  t.deepEqual(await header('ann@x.example,Oslo\nbob@x.example,Rome\n'), [false, undefined, 2]);
  t.deepEqual(await header('1,2\n3,4\n5,6\n'), [false, undefined, 3]);
  t.deepEqual(await header('v,w\n1,2\n3,4\n'), [true, undefined, 2]);
});

interface Shown {
  readonly type: string;
  readonly pattern?: string;
  readonly isSet?: boolean;
  readonly trial?: unknown;
  readonly forms?: readonly {
    readonly pattern?: string;
    readonly read: number;
    readonly of: number;
  }[];
  readonly near?: {
    readonly type: string;
    readonly pattern?: string;
    readonly nullTexts?: unknown;
  };
}

async function columnOf(name: string, values: readonly string[]): Promise<Shown> {
  const text = [`${name};w`, ...values.map((value) => `${value};x`), ''].join('\n');
  const [status, found] = await preview(text, '&header=true&whole=true&delimiter=;');
  t200(status, found);
  return (found['columns'] as [Shown])[0];
}

function t200(status: number, found: unknown): void {
  if (status !== 200) {
    throw new Error(JSON.stringify(found));
  }
}

const formsOf = ({ forms = [] }: Shown): unknown[] =>
  forms.map(({ pattern, read, of }) => [pattern, read, of]);

test('each time format that fits is offered with the number of values it fits', async (t) => {
  const days = Array.from({ length: 12 }, (_, day) => String(day + 1).padStart(2, '0'));
  const both = await columnOf(
    'when',
    days.map((day) => `03/${day}/2026 12:00:00 AM`),
  );
  t.is(both.type, 'VARCHAR');
  t.deepEqual(
    formsOf(both),
    [
      ['d/M/yyyy h:mm:ss a', 12, 12],
      ['M/d/yyyy h:mm:ss a', 12, 12],
    ].map(([pattern, ...counts]) => [
      String(pattern).replace('d/M', 'dd/MM').replace('M/d', 'MM/dd'),
      ...counts,
    ]),
  );
  const us = await columnOf('when', ['03/01/2026 1:05:00 PM', '03/31/2026 12:00:00 AM']);
  t.deepEqual(
    [us.type, us.pattern, us.isSet, us.trial],
    ['TIMESTAMP', 'MM/dd/yyyy h:mm:ss a', true, { read: 2, of: 2 }],
  );
  for (const [values, pattern] of [
    [['1 Mar 2026', '15 Apr 2026'], 'd MMM yyyy'],
    [['March 1, 2026', 'April 15, 2026'], 'MMM d, yyyy'],
    [['31.12.2026 10:00', '01.02.2026 23:59'], 'dd.MM.yyyy HH:mm'],
    [['1767225600', '1767225601'], 'epoch_s'],
    [['1767225600000', '1767225601000'], 'epoch_ms'],
    [['1767225600000000', '1767225601000000'], 'epoch_us'],
    [['1767225600000000000', '1767225601000000000'], 'epoch_ns'],
  ] as const) {
    const found = await columnOf('ts', values);
    t.deepEqual([found.pattern, found.trial], [pattern, { read: 2, of: 2 }], values[0]);
  }
  const partly = await columnOf('when', ['31/12/2026 10:00:00', 'soon', '30/12/2026 10:00:00']);
  t.deepEqual(formsOf(partly), [['dd/MM/yyyy HH:mm:ss', 2, 3]]);
});

test('numbers mixed with null strings are offered as numbers', async (t) => {
  const { near, type } = await columnOf('v', ['62,04', 'n/a', '1.050,5', '-', '7']);
  t.is(type, 'VARCHAR');
  t.like(near, { type: 'DOUBLE', pattern: ',', nullTexts: ['n/a', '-'], misfits: 2, row: 2 });
});

test('a custom time format is tried; an invalid pattern is only reported', async (t) => {
  const trial = async (entry: object): Promise<Record<string, unknown>> => {
    const query = new URLSearchParams({ trial: JSON.stringify(entry), index: '0', header: 'true' });
    const text = 'at,v\n03/01/2026 12:00:00 AM,1\n03/02/2026 1:00:00 PM,2\n';
    const [status, found] = await preview(text, `&whole=true&${query.toString()}`);
    t.is(status, 200);
    return found;
  };
  const at = { name: 'at', type: 'TIMESTAMP' };
  t.deepEqual(await trial({ ...at, pattern: 'MM/dd/yyyy h:mm:ss a' }), { read: 2, of: 2 });
  t.deepEqual(await trial({ ...at, pattern: 'MM/dd/yyyy' }), { read: 0, of: 2 });
  t.deepEqual(await trial({ ...at, pattern: 'qqq' }), { read: 0, of: 2 });
  t.is(typeof (await trial(at))['problem'], 'string');
  t.is(typeof (await trial([]))['problem'], 'string');
});

test('a new table is not created if no rows could be read', async (t) => {
  const send = async (more: string): Promise<Record<string, unknown>> => {
    const form = new FormData();
    form.append('schema', '[{"name":"at","type":"TIMESTAMP","pattern":"MM/dd/yyyy"}]');
    const text = 'at,v\n03/01/2026 12:00:00 AM,1\n03/02/2026 1:00:00 PM,2\n';
    form.append('data', new Blob([text]), 'x.csv');
    const target = `${harness.url}/imp?fmt=json&name=no_rows&timestamp=at&forceHeader=true${more}`;
    return (await (await fetch(target, { method: 'POST', body: form })).json()) as never;
  };
  const refused = await send('&requireRows=true');
  t.regex(
    String(refused['status']),
    /^nothing was imported: 2 of 2 rows could not be read, line 2/,
  );
  const query = encodeURIComponent('select table_name from tables()');
  const tables = await fetch(`${harness.url}/exec?query=${query}`);
  t.deepEqual(((await tables.json()) as { dataset: unknown }).dataset, []);
  t.like(await send(''), { status: 'OK', rowsImported: 0, rowsRejected: 2 });
});
