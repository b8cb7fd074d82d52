/**
 * The SQL and shell examples in the documentation, executed page by page in order. A `sql` block
 * runs over HTTP, a `sh` block in a shell where `localhost:9000` is the server. A `csv` or `text`
 * block that follows is the expected output; for `sql`, it is the output of the last statement. An
 * `sql wire` block runs over the PostgreSQL wire protocol, on its own connection. The programs in
 * docs/connect and docs/changes.md have their own tests.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

import { send } from '../golden/http-client.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { pgClient } from '../pg-client.js';
import { until } from '../until.js';
import { SETUPS } from './setups.js';

const DOCS = fileURLToPath(new URL('../../../docs', import.meta.url));
/** The examples' output has the same line endings as the documents. */
const BLOCK = /^```(sql|sh)(?: ([^\n]*))?\n(.*?)^```$(?:\n+```(csv|text)\n(.*?)^```$)?/gms;

interface Example {
  readonly language: string;
  /** The words after the language. */
  readonly options: string;
  readonly code: string;
  /** The expected output, if the page shows it. */
  readonly output: string | null;
}

function examplesOf(page: string): Example[] {
  return [...page.matchAll(BLOCK)].map(([, language = '', options = '', code = '', , output]) => ({
    language,
    options,
    code,
    output: output ?? null,
  }));
}

/** Splits at semicolons at line ends. */
function statementsOf(code: string): string[] {
  return code
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/**
 * Whether the output matches: exactly for SQL. For a shell, `…` matches any characters within a
 * line, and trailing spaces are ignored.
 */
function fits(language: string, found: string, expected: string): boolean {
  const lines = (text: string): string => text.replaceAll('\r\n', '\n');
  if (language === 'sql') {
    return lines(found) === expected;
  }
  const plain = (text: string): string => lines(text).trimEnd();
  const pattern = plain(expected)
    .split('…')
    .map((literal) => literal.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[^\\n]*');
  return new RegExp(`^${pattern}$`).test(plain(found));
}

/** Executes a statement; if `isShown`, returns its answer as CSV. */
async function answerOf(
  server: TestServer,
  sql: string,
  headers: Headers,
  isShown = false,
): Promise<string> {
  const target = `/${isShown ? 'exp' : 'exec'}?query=${encodeURIComponent(sql)}`;
  const reply = await send(server.url, { method: 'GET', target, headers, body: null });
  const body = reply.body.toString('utf8');
  if (reply.status !== 200) {
    throw new Error(`${sql}\n${body}`);
  }
  return body;
}

/** Executes statements on a new connection of the wire protocol. */
async function runOverWire(server: TestServer, code: string): Promise<void> {
  const client = pgClient(server.pg);
  await client.connect();
  try {
    for (const statement of statementsOf(code)) {
      await client.query(statement);
    }
  } finally {
    await client.end();
  }
}

type Headers = Record<string, string>;

const pages = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.md') && !file.startsWith('connect') && !file.startsWith('decisions'),
);
for (const page of pages.sort()) {
  const setup = SETUPS[page] ?? {};
  const text = readFileSync(join(DOCS, page), 'utf8');
  const isRun = (language: string): boolean => setup.languages?.includes(language) ?? true;
  const examples = examplesOf(text).filter(({ language }) => isRun(language));
  if (examples.length === 0) {
    continue;
  }
  // Runs one server at a time, because other tests share the machine.
  test.serial(`every example of ${page} works`, async (t) => {
    t.timeout(5 * 60_000);
    const fences = [...text.matchAll(/^```(sql|sh)\b/gm)].filter(([, one = '']) => isRun(one));
    t.is(examples.length, fences.length, 'every block is parsed as an example');
    const compared = examples.filter(({ output }) => output !== null).length;
    t.true(compared >= (setup.minOutputs ?? 0), `${compared} outputs`);
    t.true(
      compared === examples.length || setup.showsAll !== true,
      'each example shows its output',
    );
    const folder = await mkdtemp(join(tmpdir(), 'tidemark-examples-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    for (const [name, content] of Object.entries(setup.files ?? {})) {
      await writeFile(join(folder, name), content);
    }
    const set = ['cairo.commit.mode=nosync', 'log.level=error', `cairo.sql.copy.root=${folder}`];
    const server = await startTestServer({
      set: [...set, ...(setup.set ?? [])],
      args: setup.args ?? [],
    });
    t.teardown(() => server.stop());
    const headers: Headers = setup.headers ?? {};
    const address = new URL(server.url).host;
    await writeFile(join(folder, '.curlrc'), `connect-to = "localhost:9000:${address}"\n`);
    const PATH = `${folder}:${process.env['PATH'] ?? ''}`;
    const options = { cwd: folder, env: { ...process.env, PATH, CURL_HOME: folder } };
    for (const sql of setup.sql ?? []) {
      await answerOf(server, sql, headers);
    }
    if (setup.shell !== undefined) {
      await promisify(execFile)('sh', ['-e', '-c', setup.shell], options);
    }
    for (const { language, options: words, code, output } of examples) {
      let found = '';
      const run = async (): Promise<boolean> => {
        if (language === 'sh') {
          const { stdout } = await promisify(execFile)('sh', ['-e', '-c', code], options);
          found = stdout;
        } else if (words === 'wire') {
          await runOverWire(server, code);
        } else {
          const statements = statementsOf(code);
          const shown = output === null ? -1 : statements.length - 1;
          for (const [at, statement] of statements.entries()) {
            found = await answerOf(server, statement, headers, at === shown);
          }
        }
        return output === null || fits(language, found, output);
      };
      // A query on a view shows new rows of its base only a moment later.
      const mayLag = setup.lags === true && language === 'sql' && output !== null;
      await (mayLag ? until(run, code).catch(() => undefined) : run());
      t.true(
        output === null || fits(language, found, output),
        `${code}\nprints\n${found}\nnot\n${output}`,
      );
    }
  });
}

test('the example checker detects different output', (t) => {
  t.true(fits('sh', '{"a":12}\r\n', '{"a":…}'));
  t.false(fits('sh', '{"a":12}', '{"a":13}'));
  t.false(fits('sh', '{"a":12}\nmore', '{"a":…}'));
  t.true(fits('sql', '"1"\r\n1\r\n', '"1"\n1\n'));
  t.false(fits('sql', '"1"\r\n1\r\n\r\n', '"1"\n1\n'));
  t.deepEqual(examplesOf('```sql\nSELECT 1;\n```\n\n```csv\n"1"\n1\n```\n'), [
    { language: 'sql', options: '', code: 'SELECT 1;\n', output: '"1"\n1\n' },
  ]);
});

test('every page with an example setup exists', (t) => {
  t.deepEqual(
    Object.keys(SETUPS).filter((page) => !pages.includes(page)),
    [],
  );
});
