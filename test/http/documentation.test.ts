/**
 * The examples of docs/http.md, run as they stand: each `sh` block in a shell, what it prints
 * compared with the `text` block that follows. curl gets the address of `localhost:9000`.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

const run = promisify(execFile);
const DOCUMENT = new URL('../../../docs/http.md', import.meta.url);

interface Example {
  readonly commands: string;
  readonly output: string;
}

function examplesOf(document: string): Example[] {
  const blocks = document.matchAll(/^```sh\n(.*?)^```\n+```text\n(.*?)^```$/gms);
  return [...blocks].map(([, commands = '', output = '']) => ({ commands, output }));
}

/** Lines end as they like, and `…` is anything within one. */
function fits(found: string, expected: string): boolean {
  const plain = (text: string): string => text.replaceAll('\r\n', '\n').trimEnd();
  const pattern = plain(expected)
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('[^\\n]*');
  return new RegExp(`^${pattern}$`).test(plain(found));
}

let server: TestServer;
let folder: string;

test.before(async () => {
  server = await startTestServer();
  folder = await mkdtemp(join(tmpdir(), 'tidemark-examples-'));
  const { host } = new URL(server.url);
  await writeFile(join(folder, '.curlrc'), `connect-to = "localhost:9000:${host}"\n`);
});

test.after.always(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

test('every example of the documentation prints what it says', async (t) => {
  const document = await readFile(DOCUMENT, 'utf8');
  const examples = examplesOf(document);
  t.is(examples.length, document.split('```sh').length - 1, 'each example has its output');
  t.true(examples.length >= 10);
  const options = { cwd: folder, env: { ...process.env, CURL_HOME: folder } };
  for (const { commands, output } of examples) {
    const { stdout } = await run('sh', ['-e', '-c', commands], options);
    t.true(fits(stdout, output), `${commands}\nprints\n${stdout}\nexpected\n${output}`);
  }
});

test('a difference is seen', (t) => {
  t.true(fits('{"a":12}\r\n', '{"a":…}'));
  t.false(fits('{"a":12}', '{"a":13}'));
  t.false(fits('{"a":12}\nmore', '{"a":…}'));
});
