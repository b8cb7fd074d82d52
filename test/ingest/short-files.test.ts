/**
 * Header, types and rows of short files, with and without a final line break, compared with a
 * model.
 */
import { existsSync } from 'node:fs';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows } from '../scenario/statements.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test.serial : test.serial.skip;

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

interface Answer {
  readonly status: string;
  readonly header?: boolean;
  readonly rowsImported?: number;
  readonly warnings?: readonly string[];
  readonly columns?: readonly { readonly name: string; readonly type: string }[];
}

async function send(query: string, data: string): Promise<Answer> {
  const form = new FormData();
  form.append('data', new Blob([data]), 'data.csv');
  const target = `${server.url}/imp?fmt=json&name=short&overwrite=true&${query}`;
  const reply = await fetch(target, { method: 'POST', body: form });
  return (await reply.json()) as Answer;
}

async function preview(query: string, data: string): Promise<Answer> {
  const target = `${server.url}/api/v1/import/preview?name=short&whole=true&${query}`;
  return (await (await fetch(target, { method: 'POST', body: data })).json()) as Answer;
}

/** A column type: its values as written in the file, and as returned by a query. */
interface Kind {
  readonly type: string;
  readonly texts: readonly [string, string, string];
  readonly values: readonly [unknown, unknown, unknown];
}

const KINDS = {
  int: { type: 'INT', texts: ['7', '-12', '345'], values: [7, -12, 345] },
  double: { type: 'DOUBLE', texts: ['1.5', '-2.25', '1e3'], values: [1.5, -2.25, 1000] },
  boolean: { type: 'BOOLEAN', texts: ['true', 'false', 'true'], values: [true, false, true] },
  time: {
    type: 'TIMESTAMP',
    texts: [1, 2, 3].map((day) => `2026-01-0${day}T00:00:00.000000Z`) as never,
    values: [1, 2, 3].map((day) => `2026-01-0${day}T00:00:00.000000Z`) as never,
  },
  text: { type: 'VARCHAR', texts: ['Oslo', 'Rome', 'Bonn'], values: ['Oslo', 'Rome', 'Bonn'] },
} satisfies Record<string, Kind>;

const TABLES: readonly (readonly [string, Kind])[][] = [
  [
    ['id', KINDS.int],
    ['v', KINDS.int],
  ],
  [
    ['ts', KINDS.time],
    ['v', KINDS.double],
  ],
  [
    ['city', KINDS.text],
    ['isOpen', KINDS.boolean],
    ['n', KINDS.int],
  ],
  [['price', KINDS.double]],
];

interface Form {
  readonly columns: readonly (readonly [string, Kind])[];
  readonly count: number;
  readonly header: boolean;
  readonly delimiter: string;
  readonly lineEnd: string;
  readonly ending: 'none' | 'one' | 'blank lines';
  readonly quotes: boolean;
}

function* forms(): Generator<Form> {
  for (const columns of TABLES) {
    for (const count of [0, 1, 2, 3]) {
      for (const header of [true, false]) {
        for (const delimiter of [',', '\t', '|']) {
          for (const lineEnd of ['\n', '\r\n']) {
            for (const ending of ['none', 'one', 'blank lines'] as const) {
              const quotes = lineEnd === '\n' && delimiter !== '\t';
              yield { columns, count, header, delimiter, lineEnd, ending, quotes };
            }
          }
        }
      }
    }
  }
}

function textOf({ columns, count, header, delimiter, lineEnd, ending, quotes }: Form): string {
  const cell = (text: string): string => (quotes ? `"${text}"` : text);
  const lines = [
    ...(header ? [columns.map(([name]) => name)] : []),
    ...[0, 1, 2].slice(0, count).map((row) => columns.map(([, { texts }]) => texts[row] ?? '')),
  ];
  const text = lines.map((line) => line.map(cell).join(delimiter)).join(lineEnd);
  return text + { none: '', one: lineEnd, 'blank lines': lineEnd.repeat(3) }[ending];
}

real('short files have the header, types and rows that the model predicts', async (t) => {
  let sent = 0;
  for (const form of forms()) {
    const { columns, count, header } = form;
    const text = textOf(form);
    const about = JSON.stringify(text);
    const isTimed = columns[0]?.[0] === 'ts' && header;
    const query = isTimed ? 'timestamp=ts&partitionBy=DAY' : '';
    if (count + Number(header) < 2) {
      t.regex((await send(query, text)).status, /^not enough lines|^empty|no /, about);
      continue;
    }
    const names = columns.map(([name], at) => (header ? name : `f${at}`));
    const expected = names.map((name, at) => [name, columns[at]?.[1].type]);
    const shape = ({ header: found, columns: all = [] }: Answer): unknown => [
      found,
      all.map(({ name, type }) => [name, type]),
    ];
    t.deepEqual(shape(await preview('', text)), [header, expected], `preview of ${about}`);
    const answer = await send(query, text);
    t.deepEqual(shape(answer), [header, expected], `${about}: ${answer.status}`);
    t.deepEqual([answer.rowsImported, answer.warnings], [count, undefined], about);
    const values = [0, 1, 2]
      .slice(0, count)
      .map((row) => columns.map(([, one]) => one.values[row]));
    t.deepEqual(await rows(server, 'SELECT * FROM short'), values, about);
    sent += 1;
  }
  t.is(sent, 360);
});

real('import parameters do not change how the last line is parsed', async (t) => {
  for (const atomicity of ['abort', 'skipRow', 'skipCol']) {
    for (const more of ['', '&forceHeader=true', '&delimiter=,']) {
      for (const end of ['', '\n']) {
        const answer = await send(`atomicity=${atomicity}${more}`, `id,v\n1,2.5${end}`);
        const found = answer.columns?.map(({ name, type }) => `${name} ${type}`);
        t.deepEqual([answer.header, answer.rowsImported], [true, 1], `${atomicity}${more}`);
        t.deepEqual(found, ['id INT', 'v DOUBLE']);
      }
    }
  }
  // The last line affects the detected types like any other line.
  const last = await send('atomicity=abort', 'id,v\n1,2\n2,3.5');
  t.deepEqual([last.rowsImported, last.columns?.[1]?.type], [2, 'DOUBLE']);
  t.deepEqual(await rows(server, 'SELECT v FROM short'), [[2], [3.5]]);
  const quoted = await send('', 'id,note\n1,"first\nsecond"');
  t.deepEqual([quoted.header, quoted.rowsImported], [true, 1]);
  t.deepEqual(await rows(server, 'SELECT note FROM short'), [['first\nsecond']]);
});

real('files of one byte, one line, one column or 10,000 columns are handled', async (t) => {
  for (const text of ['x', '\n', '1', '"', ',', '\ufeff', '\0']) {
    const answer = await send('', text);
    t.not(answer.status, 'OK', JSON.stringify(text));
    t.is((await fetch(`${server.url}/ping`)).status, 204);
  }
  const times = await send('timestamp=at', 'at\n2026-01-01T00:00:00\n2026-01-02T00:00:00');
  t.deepEqual([times.header, times.rowsImported], [true, 2], times.status);
  const wide = (count: number): Promise<Answer> => {
    const names = Array.from({ length: count }, (_, at) => `column${at}`);
    return send('', `${names.join()}\n${names.map((_, at) => at).join()}`);
  };
  const widest = await wide(4096);
  t.deepEqual([widest.header, widest.rowsImported, widest.columns?.length], [true, 1, 4096]);
  t.regex((await wide(10_000)).status, /has 10000 columns: at most 4096 columns are allowed/);
  const marked = await send('', '\ufeffid,v\n1,2');
  t.deepEqual([marked.header, marked.columns?.[0]?.name], [true, 'id']);
});
