/** The programs of docs/changes.md run as printed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test, { type ExecutionContext } from 'ava';

import { startTestServer } from '../golden/server.js';
import { run } from '../scenario/statements.js';
import { until } from '../until.js';

const PAGE = fileURLToPath(new URL('../../../docs/changes.md', import.meta.url));

/** Returns the fenced code blocks in the given language. */
async function blocks(language: string): Promise<string[]> {
  const text = await readFile(PAGE, 'utf8');
  const found = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'));
  return [...found].map(([, block = '']) => block);
}

interface Program {
  out(): string;
  end(): void;
}

async function start(
  t: ExecutionContext,
  command: string,
  args: readonly string[],
): Promise<Program> {
  const child = spawn(command, args);
  t.teardown(() => child.kill());
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (out += text));
  await once(child, 'spawn');
  return { out: () => out, end: () => child.kill() };
}

test('the documented Node.js, Python and curl clients follow a table', async (t) => {
  const server = await startTestServer({ set: ['changes.heartbeat=200ms'] });
  t.teardown(() => server.stop());
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-changes-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await run(server, ...(await blocks('sql')));
  const [javascript = ''] = await blocks('js');
  const [python = ''] = await blocks('python');
  await writeFile(join(folder, 'copy.mjs'), javascript);
  const port = server.pg.split(':')[1] ?? '';
  const of = `host=127.0.0.1 port=${port} user=admin password=quest dbname=qdb`;
  const copy = await start(t, process.execPath, [join(folder, 'copy.mjs'), server.url]);
  await until(() => /^\d+ 0$/m.test(copy.out()), `a copy without rows: ${copy.out()}`);
  const listener = await start(t, 'python3', ['-c', python, of]);
  const curls = (await blocks('sh')).join('').trim().split('\n');
  const shell = curls.map((line) => line.replace('http://127.0.0.1:9000', server.url));
  const [plain, filtered] = await Promise.all(
    shell.map((line) => start(t, 'sh', ['-c', `exec ${line}`])),
  );
  await until(() => filtered?.out().includes('range') === true, 'the filtered feed sends a range');
  await until(() => plain?.out().includes('position') === true, 'a feed');
  // The listening program prints nothing before the first notification, so rows are inserted until
  // a notification is printed.
  let second = 10;
  await until(async () => {
    second += 1;
    await run(
      server,
      `INSERT INTO trades VALUES ('2026-03-02T09:00:${second}Z', 'GOLD', 50.0),
       ('2026-03-02T09:00:${second}Z', 'IRON', 9.0)`,
    );
    return listener.out().includes('"kind"') || listener.out().includes("'kind': 'rows'");
  }, `a notification: ${listener.out()}`);
  const rows = (second - 10) * 2;
  await until(() => copy.out().trim().endsWith(` ${rows}`), `${rows} rows: ${copy.out()}`);
  await run(server, "DELETE FROM trades WHERE symbol = 'IRON'");
  await until(
    () =>
      copy
        .out()
        .trim()
        .endsWith(` ${rows / 2}`),
    `half of the rows: ${copy.out()}`,
  );
  t.regex(plain?.out() ?? '', /"GOLD",50\.0/);
  t.regex(filtered?.out() ?? '', /"columns":\[\{"name":"ts".*\{"name":"price"/);
  t.notRegex(filtered?.out() ?? '', /9\.0\]/);
});
