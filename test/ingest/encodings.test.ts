/** Files that are not UTF-8, and ambiguous dates: the import never guesses silently. */
import { existsSync } from 'node:fs';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows } from '../scenario/statements.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test.serial : test.serial.skip;

interface Answer {
  readonly status: string;
  readonly rowsImported: number;
  readonly rowsRejected: number;
  readonly warnings?: readonly string[];
  readonly columns: readonly { readonly name: string; readonly errors: number }[];
}

let server: TestServer;

test.before(async () => {
  if (addon) {
    server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  }
});

test.after.always(async () => {
  if (addon) {
    await server.stop();
  }
});

async function send(query: string, data: Buffer, schema?: object): Promise<Answer> {
  const form = new FormData();
  if (schema !== undefined) {
    form.append('schema', JSON.stringify(schema));
  }
  form.append('data', new Blob([new Uint8Array(data)]), 'data.csv');
  const reply = await fetch(`${server.url}/imp?fmt=json&${query}`, { method: 'POST', body: form });
  return (await reply.json()) as Answer;
}

const TEXT = 'k,v\nä,1\nö€,2\nü,3\n';

real('a byte order mark or the encoding parameter determines the encoding', async (t) => {
  const utf16 = Buffer.from(TEXT, 'utf16le');
  const swapped = Buffer.from(utf16).swap16();
  const bytes = (...values: readonly number[]): Buffer => Buffer.from(values);
  const windows = Buffer.from(TEXT.replace('€', '\u0080'), 'latin1');
  const sent: readonly (readonly [string, string, Buffer])[] = [
    ['plain', '', Buffer.from(TEXT)],
    ['bom8', '', Buffer.concat([bytes(0xef, 0xbb, 0xbf), Buffer.from(TEXT)])],
    ['bom16le', '', Buffer.concat([bytes(0xff, 0xfe), utf16])],
    ['bom16be', '', Buffer.concat([bytes(0xfe, 0xff), swapped])],
    ['named16', '&encoding=utf-16le', utf16],
    ['windows', '&encoding=windows-1252', windows],
  ];
  for (const [table, more, data] of sent) {
    const answer = await send(`name=${table}&forceHeader=true${more}`, data);
    t.is(answer.status, 'OK', table);
    t.deepEqual(await rows(server, `SELECT k, v FROM ${table}`), [
      ['ä', 1],
      ['ö€', 2],
      ['ü', 3],
    ]);
  }
});

real('a value that is not valid UTF-8 is an error in its column', async (t) => {
  const data = Buffer.from(TEXT, 'latin1');
  const skipped = await send('name=skipped&forceHeader=true', data);
  t.deepEqual([skipped.status, skipped.rowsImported], ['OK', 3]);
  t.deepEqual(
    skipped.columns.map(({ errors }) => errors),
    [3, 0],
  );
  t.deepEqual(
    skipped.warnings,
    [2, 3, 4].map(
      (line) => `line ${line}, field 1: not UTF-8: specify the text's encoding (encoding=)`,
    ),
  );
  t.deepEqual(await rows(server, 'SELECT DISTINCT k FROM skipped'), [[null]]);
  const dropped = await send('name=dropped&forceHeader=true&atomicity=skipRow', data);
  t.deepEqual([dropped.rowsImported, dropped.rowsRejected], [0, 3]);
  const ended = await send('name=ended&forceHeader=true&atomicity=abort', data);
  t.regex(ended.status, /not UTF-8: specify the text's encoding/);
  const unknown = await send('name=unknown&encoding=klingon', data);
  t.regex(unknown.status, /unknown encoding 'klingon'/);
  const wrong = await send('name=wrong&encoding=utf-16be', Buffer.from([0xd8, 0x00, 0x00]));
  t.regex(wrong.status, /the text is not valid utf-16be/);
});

real('ambiguous dates are refused as the designated timestamp', async (t) => {
  const data = Buffer.from('d,v\n01/02/2026,1\n03/04/2026,2\n05/06/2026,3\n');
  const query = 'timestamp=d&partitionBy=DAY&forceHeader=true';
  const { status } = await send(`name=dates&${query}`, data);
  t.regex(status, /ambiguous dates.*dd\/MM\/yyyy.*MM\/dd\/yyyy/);
  const pattern = [{ name: 'd', type: 'TIMESTAMP', pattern: 'MM/dd/yyyy' }];
  t.is((await send(`name=dates&${query}`, data, pattern)).status, 'OK');
  t.deepEqual(await rows(server, 'SELECT d FROM dates LIMIT 1'), [['2026-01-02T00:00:00.000000Z']]);
  const clear = Buffer.from('d,v\n01/02/2026,1\n13/04/2026,2\n05/06/2026,3\n');
  t.is((await send(`name=clear&${query}`, clear)).status, 'OK');
  t.is((await send('name=plain_dates&forceHeader=true', data)).status, 'OK');
});
