/** What an import would make of a file, without writing anything. */
import test from 'ava';

import { type Harness, startHarness } from './harness.js';

let harness: Harness;
test.before(async () => {
  harness = await startHarness();
});
test.after.always(() => harness.server.close());

async function preview(body: string, query = ''): Promise<[number, Record<string, unknown>]> {
  const target = `${harness.url}/api/v1/import/preview?name=weather.csv${query}`;
  const response = await fetch(target, { method: 'POST', body });
  return [response.status, (await response.json()) as Record<string, unknown>];
}

test('a text is described by its columns and first values', async (t) => {
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
        { name: 'at', type: 'DATE', couldBeTimestamp: true, values: ['2026-01-01', '2026-01-02'] },
      ],
    },
  ]);
});

test('the header ends where its line does, whatever its bytes', async (t) => {
  const [, found] = await preview('"Größe\n1",v\n1,2\n3,4\n');
  t.is(found['headerBytes'], Buffer.byteLength('"Größe\n1",v\n'));
  const [, none] = await preview('1,2\n3,4\n', '&header=false');
  t.is(none['headerBytes'], 0);
});

test('a header that is no name is kept beside the name', async (t) => {
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

test('a type that nearly fits is named with its first misfit', async (t) => {
  const lines = Array.from({ length: 20 }, (_, row) => (row === 4 ? 'n/a,x' : `${row}.5,x`));
  const [, found] = await preview(`v,w\n${lines.join('\n')}\n`, '&header=true');
  const columns = found['columns'] as Record<string, unknown>[];
  t.deepEqual(columns[0]?.['near'], { type: 'DOUBLE', misfits: 1, first: 'n/a', row: 5 });
});

test('what has no structure is refused in the words of the import', async (t) => {
  t.deepEqual(await preview('alone'), [400, { error: 'not enough lines [table=weather]' }]);
  t.deepEqual(await preview('a,a\n1,2\n3,4\n', '&header=true'), [
    400,
    { error: 'duplicate column name found [no=1,name=a]' },
  ]);
});

test('a last line without an end counts when the file ends there', async (t) => {
  t.is((await preview('a,b\n1,2\n3,4', '&header=true'))[1]['rows'], 1);
  t.is((await preview('a,b\n1,2\n3,4', '&header=true&whole=true'))[1]['rows'], 2);
});

test('a header over nothing but text is guessed, and the guess is told', async (t) => {
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
  t.deepEqual(await header('station,v\noslo,1\n'), [true, true, 1]);
  t.deepEqual(await header('Ann,Oslo\nBob,Rome\nEve,Oslo\n'), [false, true, 3]);
  t.deepEqual(await header('Ann,Bern\nBob,Rome\nEve,Graz\n'), [false, true, 3]);
  t.deepEqual(await header('ann@x.example,Oslo\nbob@x.example,Rome\n'), [false, undefined, 2]);
  t.deepEqual(await header('1,2\n3,4\n5,6\n'), [false, undefined, 3]);
  t.deepEqual(await header('v,w\n1,2\n3,4\n'), [true, undefined, 2]);
});
