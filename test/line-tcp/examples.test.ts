/** The examples in `docs/connect/ingestion.md`, run if their language is installed. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

import test from 'ava';

import { has, run, skip, SOURCES, TOOLS } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { rows } from '../line/harness.js';
import { portOf, shows } from './harness.js';

let server: TestServer;
let folder = '';
let page = '';

test.before(async () => {
  server = await startTestServer({ set: ['line.tcp.commit.interval.default=50ms'] });
  folder = await mkdtemp(join(tmpdir(), 'tidemark-examples-'));
  page = await readFile(new URL('../../docs/connect/ingestion.md', SOURCES), 'utf8');
  const [create = ''] = examples('sql');
  const created = await fetch(`${server.url}/exec?query=${encodeURIComponent(create)}`);
  if (!created.ok) {
    throw new Error(await created.text());
  }
});
test.after.always(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Returns the examples in one language, adapted to these ports. */
function examples(language: string): string[] {
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))];
  const { port } = new URL(server.url);
  const line = String(portOf(server));
  return blocks.map(([, code = '']) => code.replaceAll('9000', port).replaceAll('9009', line));
}

const JARS = ['questdb-client.jar', 'slf4j-api.jar'].map((name) => join(TOOLS, 'jars', name));
const NODE_MODULES = join(TOOLS, 'node');

/** How to run the examples in a language. */
interface Language {
  readonly language: string;
  readonly count: number;
  readonly lacks: () => Promise<boolean>;
  readonly run: (code: string) => Promise<unknown>;
}

async function runFile(name: string, code: string, command: readonly string[]): Promise<unknown> {
  const file = join(folder, name);
  await writeFile(file, code);
  const [program = '', ...args] = command;
  return await run(program, [...args, file]);
}

/** Whether a compiler cannot find libcurl. */
async function lacksCurl(compiler: string): Promise<boolean> {
  return !(await has(compiler, '-include', 'curl/curl.h', '-fsyntax-only', '-x', 'c', '/dev/null'));
}

/** Compiles and runs the program with libcurl. */
async function runBuilt(name: string, code: string, compiler: readonly string[]): Promise<unknown> {
  const [source, program] = [join(folder, name), join(folder, `${name}.out`)];
  await writeFile(source, code);
  const [command = '', ...options] = compiler;
  await run(command, [...options, '-o', program, source, '-lcurl']);
  return await run(program, []);
}

const LANGUAGES: readonly Language[] = [
  {
    language: 'sh',
    count: 1,
    lacks: async () => !(await has('curl', '--version')),
    run: (code) => run('sh', ['-e', '-c', code]),
  },
  {
    language: 'bash',
    count: 1,
    lacks: async () => !(await has('bash', '--version')),
    run: (code) => run('bash', ['-e', '-c', code]),
  },
  {
    language: 'python',
    count: 4,
    lacks: async () =>
      !(await has('python3', '-c', 'import questdb.ingress, pandas, pyarrow, influxdb_client')),
    run: (code) => run('python3', ['-W', 'ignore', '-c', code]),
  },
  {
    language: 'js',
    count: 1,
    lacks: () => Promise.resolve(!existsSync(join(NODE_MODULES, 'node_modules', '@questdb'))),
    run: async (code) => {
      const folder = await mkdtemp(join(NODE_MODULES, 'example-'));
      try {
        await writeFile(join(folder, 'example.mjs'), code);
        await run(process.execPath, [join(folder, 'example.mjs')]);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  },
  {
    language: 'java',
    count: 1,
    lacks: async () => !JARS.every(existsSync) || !(await has('java', '-version')),
    run: (code) => runFile('Example.java', code, ['java', '-cp', JARS.join(delimiter)]),
  },
  {
    language: 'c',
    count: 1,
    lacks: () => lacksCurl('gcc'),
    run: (code) => runBuilt('example.c', code, ['gcc', '-Wall', '-Wextra', '-Werror']),
  },
  {
    language: 'cpp',
    count: 1,
    lacks: () => lacksCurl('g++'),
    run: (code) => runBuilt('example.cpp', code, ['g++', '-Wall', '-Wextra', '-Werror']),
  },
  {
    language: 'cs',
    count: 1,
    lacks: async () => !(await has('mcs', '--version')) || !(await has('mono', '--version')),
    run: async (code) => {
      const program = join(folder, 'example.exe');
      const compiler = ['mcs', '-r:System.Net.Http.dll', `-out:${program}`];
      await runFile('example.cs', code, compiler);
      await run('mono', [program]);
    },
  },
  {
    language: 'go',
    count: 1,
    lacks: async () => !(await has('go', 'version')),
    run: (code) => runFile('example.go', code, ['go', 'run']),
  },
];

for (const { language, count, lacks, run: runCode } of LANGUAGES) {
  test.serial(`the documented example runs: ${language}`, async (t) => {
    if (await lacks()) {
      skip(t, `${language} or its client is not installed: node scripts/setup-tests.mjs`);
      return;
    }
    const codes = examples(language);
    t.is(codes.length, count);
    for (const code of codes) {
      await rows(server, 'TRUNCATE TABLE readings');
      await runCode(code);
      const first = ['north', 1.5, '2026-01-01T10:00:00.000000Z'];
      await shows(server, 'select * from readings limit 1', [first]);
    }
  });
}

/** Compiling the examples is slow, so the setup script builds them with the other programs. */
test.serial('the documented example runs: Rust', async (t) => {
  const codes = [...page.matchAll(/^```rust\n([^]*?)^```/gm)].map(([, code]) => code);
  for (const [at, file] of ['example.rs', 'columns.rs'].entries()) {
    t.is(codes[at], await readFile(new URL(`questdb-rs/src/${file}`, SOURCES), 'utf8'));
  }
  t.is(codes.length, 2);
  const columns = join(TOOLS, 'bin', 'questdb-rs-columns');
  if (!existsSync(columns)) {
    skip(t, 'the client is not built: node scripts/setup-tests.mjs');
    return;
  }
  await rows(server, 'TRUNCATE TABLE readings');
  const { port } = new URL(server.url);
  const { stdout } = await run(columns, [`ws::addr=127.0.0.1:${port};`]);
  t.is(stdout, '1.5\n');
  const first = ['north', 1.5, '2026-01-01T10:00:00.000000Z'];
  await shows(server, 'select * from readings limit 1', [first]);
});
