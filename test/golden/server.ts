/** A server for tests: temporary root directory, free ports, stopped by its handle. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { fileURLToPath } from 'node:url';

const BUILD = fileURLToPath(new URL('../..', import.meta.url));
const CLI = commandFile();
const READY = /^tidemark ready http=(\S+) pg=(\S+)$/m;
const START_MS = 120_000;

export interface TestServer {
  readonly root: string;
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** `127.0.0.1:PORT` */
  readonly pg: string;
  /** `127.0.0.1:PORT` of the line protocol over TCP; `off` if it is disabled. */
  line(): string;
  readonly process: ChildProcess;
  /** Standard error output so far. */
  log(): string;
  /** Stops the server as an operator would; resolves to the exit code. */
  stop(): Promise<number | null>;
}

export interface TestServerOptions {
  readonly root?: string;
  readonly set?: readonly string[];
  readonly args?: readonly string[];
  /** Command to run the server under, such as a tracer. */
  readonly wrapper?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const FREE_PORTS = [
  'http.bind.to=127.0.0.1:0',
  'pg.net.bind.to=127.0.0.1:0',
  'line.tcp.net.bind.to=127.0.0.1:0',
];

/** Settings for every server in a run, such as the scan chunk size: `key=value,key=value`. */
const OF_RUN = (process.env['TIDEMARK_TEST_SET'] ?? '').split(',').filter((one) => one !== '');

/**
 * Returns the bundle, which is what users run. After a plain `tsc` the bundle is older than its
 * modules, so the modules are run directly.
 */
export function commandFile(): string {
  const bundle = join(BUILD, 'server', 'cli.js');
  const builtAt = statSync(bundle, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const isStale = readdirSync(join(BUILD, 'ts'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.js'))
    .some((name) => statSync(join(BUILD, 'ts', name)).mtimeMs > builtAt);
  return isStale ? join(BUILD, 'ts', 'cli.js') : bundle;
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const root = options.root ?? (await mkdtemp(join(tmpdir(), 'tidemark-test-')));
  const settings = [...FREE_PORTS, 'http.min.enabled=false', ...OF_RUN, ...(options.set ?? [])];
  const child = runCli(
    [
      'serve',
      '--root',
      root,
      ...settings.flatMap((setting) => ['--set', setting]),
      ...(options.args ?? []),
    ],
    options,
  );
  const match = await ready(child);
  const stop = async (): Promise<number | null> => {
    const code = await endProcess(child.process);
    if (options.root === undefined) {
      await rm(root, { recursive: true, force: true });
    }
    return code;
  };
  return {
    root,
    url: `http://${match[1] ?? ''}`,
    pg: match[2] ?? '',
    line: () => lineAddress(child.err()),
    process: child.process,
    log: child.err,
    stop,
  };
}

/** The address is reported only in the log. */
function lineAddress(log: string): string {
  return /"event":"started".*"line":"([^"]+)"/.exec(log)?.[1] ?? 'off';
}

interface RunningCli {
  readonly process: ChildProcess;
  /** Standard output so far. */
  readonly out: () => string;
  /** Standard error so far. */
  readonly err: () => string;
}

/** Servers to stop, so a test that ends early leaves none running. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) {
    child.kill('SIGKILL');
  }
});

/**
 * For each process, a promise that settles once the process has ended and all of its output has
 * been read.
 */
const ends = new WeakMap<ChildProcess, Promise<unknown>>();

/** Runs the command line in its own process. */
export function runCli(
  args: readonly string[],
  { wrapper = [], environment = {} }: Pick<TestServerOptions, 'wrapper' | 'environment'> = {},
): RunningCli {
  const [command = process.execPath, ...rest] = [...wrapper, process.execPath, CLI, ...args];
  const log = new WrittenFile();
  const child = spawn(command, rest, {
    stdio: ['ignore', 'pipe', log.descriptor],
    env: { ...process.env, ...environment },
  });
  running.add(child);
  ends.set(child, once(child, 'close'));
  child.once('close', () => {
    running.delete(child);
    log.close();
  });
  let out = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  return { process: child, out: () => out, err: () => log.text() };
}

/**
 * Output of a child process, written to an unnamed file. A line written before a response can
 * always be read once the response has arrived, whereas a pipe may deliver the line later.
 */
class WrittenFile {
  readonly descriptor: number;
  #text = '';
  #read = 0;
  #isOpen = true;
  readonly #decoder = new StringDecoder('utf8');

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-log-'));
    this.descriptor = openSync(join(folder, 'log'), 'a+');
    rmSync(folder, { recursive: true });
  }

  /** Returns all output so far. */
  text(): string {
    if (this.#isOpen) {
      const rest = Buffer.allocUnsafe(fstatSync(this.descriptor).size - this.#read);
      const count = readSync(this.descriptor, rest, 0, rest.length, this.#read);
      this.#read += count;
      this.#text += this.#decoder.write(rest.subarray(0, count));
    }
    return this.#text;
  }

  /** Reads the remaining output; the text remains available. */
  close(): void {
    this.text();
    this.#isOpen = false;
    closeSync(this.descriptor);
  }
}

/** Waits until a command ends; resolves to its exit code. */
export async function exitCode(child: ChildProcess): Promise<number | null> {
  await ends.get(child);
  return child.exitCode;
}

async function ready(child: RunningCli): Promise<RegExpExecArray> {
  const end = Date.now() + START_MS;
  while (Date.now() < end && child.process.exitCode === null) {
    const match = READY.exec(child.out());
    if (match !== null) {
      return match;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  child.process.kill('SIGKILL');
  throw new Error(`the server does not start: ${child.err()}`);
}

async function endProcess(child: ChildProcess): Promise<number | null> {
  child.kill('SIGTERM');
  return await exitCode(child);
}
