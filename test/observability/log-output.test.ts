/** Log formats, the log file with its rotation, and reloads. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { createLogger, LogFile } from '../../ts/observability/index.js';
import type { LogFormat } from '../../ts/observability/log-format.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';

const ESCAPE = '\u001b[31m';

function linesOf(format: LogFormat): string[] {
  const lines: string[] = [];
  const now = (): Date => new Date(0);
  const logger = createLogger({ level: 'debug', format, now, write: (line) => lines.push(line) });
  logger.info('started', { root: '/var/lib/tidemark', port: 9000, id: 5n, list: ['a', 'b c'] });
  logger.child('http').warn('refused', { reason: `a "b"\r\n${ESCAPE}\u009b`, none: undefined });
  logger.error('failed', { password: 'canary', text: "PASSWORD 'canary'" });
  logger.debug('long', { text: 'x'.repeat(100_000) });
  return lines;
}

test('text lines contain time, level, component, event and fields', (t) => {
  const [first, second, third, long = ''] = linesOf('text');
  const time = '1970-01-01T00:00:00.000Z';
  const values = 'root=/var/lib/tidemark port=9000 id=5 list=["a","b c"]';
  t.is(first, `${time} info  server: started ${values}\n`);
  const reason = '"a \\"b\\"\\r\\n\\u001b[31m\\u009b"';
  t.is(second, `${time} warn  http: refused reason=${reason}\n`);
  t.is(third, `${time} error server: failed password=**** text="PASSWORD ****"\n`);
  t.true(long.length < 10_000);
  t.regex(long, / \.\.\.\n$/);
});

test('journald lines have sd-daemon(3) priorities and no time', (t) => {
  const starts = linesOf('journald').map((line) => line.slice(0, 16));
  t.deepEqual(starts, [
    '<6>server: start',
    '<4>http: refused',
    '<3>server: faile',
    '<7>server: long ',
  ]);
});

test('a full log file is rotated, and the oldest files are deleted', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-log-'));
  const path = join(folder, 'logs', 'server.log');
  const lost: string[] = [];
  const fallback = (line: string): unknown => lost.push(line);
  const file = new LogFile({ path, maxBytes: 30, files: 3, fallback });
  for (let number = 1; number <= 9; number += 1) {
    file.write(`line ${number} 345\n`);
  }
  file.close();
  t.deepEqual(readdirSync(join(folder, 'logs')).sort(), [
    'server.log',
    'server.log.1',
    'server.log.2',
  ]);
  t.is(readFileSync(path, 'utf8'), 'line 9 345\n');
  t.is(readFileSync(`${path}.1`, 'utf8'), 'line 7 345\nline 8 345\n');
  t.is(readFileSync(`${path}.2`, 'utf8'), 'line 5 345\nline 6 345\n');
  t.is(statSync(path).mode & 0o777, 0o600);
  const next = new LogFile({ path, maxBytes: 30, files: 1, fallback });
  next.write('after a restart\n');
  t.is(readFileSync(path, 'utf8'), 'line 9 345\nafter a restart\n', 'the file is continued');
  next.write('and rotated\n');
  t.is(readFileSync(path, 'utf8'), 'and rotated\n', 'only one file is kept');
  next.close();
  t.deepEqual(lost, []);
});

test('lines that cannot be written to the file are not lost', (t) => {
  const lost: string[] = [];
  const file = new LogFile({
    path: '/dev/full',
    maxBytes: 0,
    files: 1,
    fallback: (line) => lost.push(line),
  });
  file.write('a line\n');
  file.close();
  t.deepEqual(lost, ['a line\n']);
});

async function reload(server: TestServer): Promise<void> {
  const { port } = new URL(server.url);
  server.process.kill('SIGHUP');
  const file = join(server.root, 'server.log');
  const loaded = (): boolean =>
    existsSync(file) && readFileSync(file, 'utf8').includes('configuration_reloaded');
  await until(() => Promise.resolve(loaded()), `a reload of the server on port ${port}`);
}

test('a reload applies the log level and reopens the log file', async (t) => {
  const root = mkdtempSync(join(tmpdir(), 'tidemark-log-'));
  mkdirSync(join(root, 'conf'));
  const conf = join(root, 'conf', 'server.conf');
  const settings = 'log.file=server.log\nlog.format=text\n';
  writeFileSync(conf, settings);
  const server = await startTestServer({ root });
  const file = join(root, 'server.log');
  t.regex(readFileSync(file, 'utf8'), /^\S+Z info {2}server: started root=/m);
  t.is(server.log(), '', 'standard error stays empty');

  renameSync(file, join(root, 'moved.log'));
  writeFileSync(conf, `${settings}log.level=debug\nlog.file.size=1K\n`);
  await reload(server);
  t.regex(
    readFileSync(file, 'utf8'),
    /configuration_reloaded applied=\["log\.level"\] waiting=\["log\.file\.size"\]/,
  );
  await fetch(`${server.url}/exec?query=nonsense`);
  await until(
    () => Promise.resolve(/^\S+Z debug /m.test(readFileSync(file, 'utf8'))),
    'a debug line',
  );
  await server.stop();
});

test('a server rotates its log', async (t) => {
  const server = await startTestServer({
    set: ['log.file=logs/a.log', 'log.file.size=1K', 'log.file.count=2', 'log.level=debug'],
  });
  for (let number = 0; number < 40; number += 1) {
    await fetch(`${server.url}/exec?query=nonsense${number}`);
  }
  const folder = join(server.root, 'logs');
  await until(() => Promise.resolve(existsSync(join(folder, 'a.log.1'))), 'a rotated file');
  t.deepEqual(readdirSync(folder).sort(), ['a.log', 'a.log.1']);
  for (const name of readdirSync(folder)) {
    t.true(statSync(join(folder, name)).size <= 1024, name);
  }
  await server.stop();
});
