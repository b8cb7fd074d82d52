/** The command line: `tidemark serve | init | status | check | mcp | version | help`. */
import { readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';

import type { RunningServer, ServeOptions } from './main.js';
import type { AgentArguments } from './mcp-command.js';
import { EXIT_USAGE, packageVersion, reasonOf, StartError } from './start-error.js';

const HELP = `usage: tidemark [command] [options]

  serve      start the server (default; also: start)
  init       write a configuration and an administrator password, and check the machine
  status     show whether a server is running on a data directory, and its figures
  check      verify all checksums and references of a data directory that is not in use
  mcp        connect an agent to a running server: Model Context Protocol over standard input
  version    print the version
  help       print this help

options of serve
  -d, --root DIR     data directory, default ~/.tidemark
      --config FILE  configuration file, default ROOT/conf/server.conf
      --set KEY=VALUE  set a configuration value; repeatable; overrides file and environment
      --demo         create the sample tables trades and quotes if they do not exist

options of init
  -d, --root DIR     data directory, default ~/.tidemark
      --config FILE  configuration file to write, default ROOT/conf/server.conf; must not exist
      --set KEY=VALUE  value to write to the file; repeatable; acl.enabled=false: no administrator
      --password-file FILE  file with the administrator's password; - for standard input
      --prompt       ask for the administrator's password; by default, a random one is printed
      --json         print the result as JSON

options of status
  -d, --root DIR     data directory, default ~/.tidemark
      --json         print the result as JSON
Exit codes of status: 0 running, 1 running with damaged tables, 3 not running, 4 no response.

options of check
  -d, --root DIR     data directory, default ~/.tidemark
      --json         print the result as JSON
Exit codes of check: 0 no problems, 1 problems found or not checked.

options of mcp
      --url URL      URL of the server, default http://127.0.0.1:9000 (TIDEMARK_URL)
      --user NAME    user name (TIDEMARK_USER); the password comes from TIDEMARK_PASSWORD or
      --password-file FILE
      --token-file FILE  token to use instead of user and password (TIDEMARK_TOKEN)
      --allow-writes allow the agent to change data

SIGHUP reloads the configuration and certificates, and opens the log file again, unless it is sent
by a closing terminal.
Ports: http.bind.to, pg.net.bind.to, http.min.bind.to; port 0 selects a free port.
`;

/**
 * Limits JavaScript heap growth between garbage collections. By default V8 lets a heap of 12 MiB
 * grow to 40 MiB, which does not make replies faster.
 */
const HEAP_GROWTH_PERCENT = 30;
/**
 * Keeps the young generation at its initial size. By default it grows to 32 MiB, which does not
 * make replies faster.
 */
const NURSERY_GROWTH_FACTOR = 1;
/**
 * The allocator reads this variable when the engine is loaded. It disables huge pages, regardless
 * of the system setting. The kernel assembles and zeroes them 2 MiB at a time, which delayed
 * commits by 40 to 80 ms.
 */
const HUGE_PAGES = { name: 'MIMALLOC_ALLOW_THP', value: '0' } as const;
/** Exit code of a forced stop, the same as that of the `timeout` command. */
const EXIT_FORCED = 124;
/** Time reserved for the exit itself, so that the process ends within `shutdown.timeout`. */
const EXIT_MS = 200;

interface Arguments {
  readonly command: string;
  readonly root: string;
  readonly config: string | undefined;
  readonly set: readonly string[];
  readonly demo: boolean;
  readonly prompt: boolean;
  readonly json: boolean;
  readonly agent: AgentArguments;
}

function readArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      root: { type: 'string', short: 'd' },
      config: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
      demo: { type: 'boolean', default: false },
      prompt: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      url: { type: 'string' },
      user: { type: 'string' },
      'password-file': { type: 'string' },
      'token-file': { type: 'string' },
      'allow-writes': { type: 'boolean', default: false },
      version: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const [named = 'serve', ...commandArguments] = positionals;
  if (commandArguments.length > 0) {
    throw new StartError(
      `unexpected argument '${commandArguments[0] ?? ''}'; see tidemark help`,
      EXIT_USAGE,
    );
  }
  const command = values.help ? 'help' : values.version ? 'version' : named;
  const { config, demo, prompt, json, set, url, user } = values;
  const agent = {
    url,
    user,
    passwordFile: values['password-file'],
    tokenFile: values['token-file'],
    allowWrites: values['allow-writes'],
  };
  return {
    command,
    // Resolved only when needed, because help and version need no data directory.
    get root() {
      return resolve(values.root ?? defaultRoot());
    },
    config,
    set,
    demo,
    prompt,
    json,
    agent,
  };
}

function defaultRoot(): string {
  try {
    return join(homedir(), '.tidemark');
  } catch {
    const reason = 'this user has no home directory: set the data directory with --root DIR';
    throw new StartError(reason, EXIT_USAGE);
  }
}

async function run(args: readonly string[]): Promise<number> {
  const chosen = readArguments(args);
  switch (chosen.command) {
    case 'serve':
    case 'start':
      await serve(chosen);
      return 0;
    // These commands are loaded late, because a server does not need them.
    case 'init':
      return await init(chosen);
    case 'status':
      return await (await import('./status-command.js')).runStatus(chosen.root, chosen.json);
    case 'check':
      return await (await import('./check.js')).runCheck(chosen.root, chosen.json);
    case 'mcp':
      await (await import('./mcp-command.js')).runMcp(chosen.agent, process.env);
      return 0;
    case 'version':
      process.stdout.write(`tidemark ${packageVersion()}\n`);
      return 0;
    case 'help':
      process.stdout.write(HELP);
      return 0;
    default:
      throw new StartError(`unknown command '${chosen.command}'; see tidemark help`, EXIT_USAGE);
  }
}

async function init({ root, config, set, prompt, json, agent }: Arguments): Promise<number> {
  const { runInit } = await import('./init-command.js');
  return await runInit({
    root,
    config: config === undefined ? undefined : resolve(config),
    set,
    passwordFile: agent.passwordFile,
    prompt,
    json,
  });
}

/** Runs the server until a signal arrives. */
async function serve(chosen: Arguments): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  setFlagsFromString(`--semi-space-growth-factor=${NURSERY_GROWTH_FACTOR}`);
  process.env[HUGE_PAGES.name] ??= HUGE_PAGES.value;
  const requests = reloadRequests();
  const stopped = nextSignal();
  const options: ServeOptions = {
    root: chosen.root,
    set: chosen.set,
    demo: chosen.demo,
    progress: (text) => process.stderr.write(`${text}\n`),
    ...(chosen.config === undefined ? {} : { configFile: resolve(chosen.config) }),
  };
  // Loaded late, because help and version do not need the engine.
  const { startServer } = await import('./main.js');
  const server = await startServer(options);
  surviveDefects(server);
  requests.onRequest(() => server.reload());
  process.stdout.write(`tidemark ready http=${server.httpAddress} pg=${server.pgAddress}\n`);
  if (server.httpAddress !== 'off') {
    const scheme = server.httpIsSecure ? 'https' : 'http';
    process.stdout.write(`console at ${scheme}://${browserAddress(server.httpAddress)}/\n`);
  }
  await stopped;
  await shutDown(server, chosen.root);
}

/**
 * Logs an unexpected error in one request instead of letting it end the process and all other
 * requests.
 */
function surviveDefects(server: RunningServer): void {
  process.on('unhandledRejection', (error) => {
    server.logger.error('defect', { error });
  });
  process.on('uncaughtException', (error) => {
    server.logger.error('defect', { error });
  });
}

/** Replaces a wildcard address, which a browser cannot open. */
function browserAddress(address: string): string {
  return address.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, 'localhost');
}

/**
 * SIGHUP requests a reload. If the server was started from a terminal, SIGHUP means that the
 * terminal closed, and the server ends. A request that arrives during startup is carried out
 * afterwards.
 */
function reloadRequests(): { onRequest(reload: () => Promise<unknown>): void } {
  let isRequested = false;
  let reload = (): void => {
    isRequested = true;
  };
  if (!isFromTerminal()) {
    process.on('SIGHUP', () => {
      reload();
    });
  }
  return {
    onRequest: (work) => {
      reload = (): void => void work();
      if (isRequested) {
        reload();
      }
    },
  };
}

function isFromTerminal(): boolean {
  return process.stdin.isTTY || process.stdout.isTTY;
}

function nextSignal(): Promise<void> {
  const signals = [
    'SIGTERM',
    'SIGINT',
    ...(isFromTerminal() ? (['SIGHUP'] as const) : []),
  ] as const;
  return new Promise((resolve) => {
    for (const signal of signals) {
      process.once(signal, () => {
        resolve();
      });
    }
  });
}

/**
 * Stops the server. At the timeout, unfinished work is abandoned. No commit is lost, because the
 * log contains every commit and the next start replays it.
 */
async function shutDown(server: RunningServer, root: string): Promise<void> {
  const { stopMs } = server;
  let step = '';
  const late = setTimeout(
    () => {
      const reason = `forced to stop: ${step} took longer than shutdown.timeout`;
      process.stderr.write(`tidemark: ${reason} [limit=${stopMs} ms]\n`);
      clearSpilled(root);
      process.exit(EXIT_FORCED);
    },
    Math.max(stopMs - EXIT_MS, stopMs / 2),
  );
  await server.close((what) => {
    step = what;
  });
  clearTimeout(late);
}

/** Deletes query spill files; the next start deletes any that remain. */
function clearSpilled(root: string): void {
  const folder = join(root, 'tmp');
  try {
    for (const name of readdirSync(folder)) {
      rmSync(join(folder, name), { recursive: true, force: true });
    }
  } catch {
    // A query is still writing. The next start deletes the remaining files.
  }
}

try {
  process.exitCode = await run(process.argv.slice(2));
  // Native threads must not keep the process alive.
  process.exit();
} catch (error) {
  const usage = error instanceof TypeError && 'code' in error;
  process.stderr.write(`tidemark: ${reasonOf(error)}\n`);
  process.exit(error instanceof StartError ? error.exitCode : usage ? EXIT_USAGE : 1);
}
