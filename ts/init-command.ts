/**
 * `tidemark init`: writes a commented `server.conf` and the administrator's password, and checks
 * the disk and the host's limits.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

import { type Config, configurationFile, KEYS, loadConfig } from './config/index.js';
import { makeDirectory } from './directories.js';
import { checkHost, type Finding } from './host-checks.js';
import { refuseInsecureListeners } from './insecure-listeners.js';
import { EXIT_CONFIG, EXIT_USAGE, reasonOf, StartError } from './start-error.js';

export interface InitArguments {
  readonly root: string;
  readonly config: string | undefined;
  readonly set: readonly string[];
  /** File with the administrator's password; `-` for standard input. */
  readonly passwordFile: string | undefined;
  /** Whether to ask for the password. */
  readonly prompt: boolean;
  readonly json: boolean;
}

interface Initialized {
  readonly root: string;
  readonly configuration: string;
  /** `null` if access control is off. */
  readonly administrator: string | null;
  /** Present only if the password was generated. */
  readonly password?: string;
  readonly passwordFile?: string;
  readonly checks: readonly Finding[];
}

const PASSWORD_BYTES = 18;
/** File mode: only the server's OS user may read passwords. */
const MODE = 0o600;

/** Runs the command and returns its exit code, which is 1 if the server could not run here. */
export async function runInit(given: InitArguments): Promise<number> {
  const { root } = given;
  const configuration = given.config ?? join(root, 'conf', 'server.conf');
  if (existsSync(configuration)) {
    throw new StartError(`the configuration file '${configuration}' already exists`);
  }
  const asked = await readPassword(given);
  const password = asked ?? randomBytes(PASSWORD_BYTES).toString('base64url');
  const config = validated(given.set, password);
  const passwordFile = join(dirname(configuration), 'admin.password');
  const hasUsers = config.get(KEYS.aclEnabled);
  if (!hasUsers && asked !== null) {
    throw new StartError('a password requires acl.enabled=true', EXIT_USAGE);
  }
  const values = new Map(given.set.map(splitSetting));
  if (hasUsers) {
    values.set(KEYS.aclEnabled.name, 'true');
    values.set(`${KEYS.aclAdminPassword.name}.file`, passwordFile);
  }
  const checks = checkHost(root);
  writeFiles(root, [
    ...(hasUsers ? [[passwordFile, `${password}\n`] as const] : []),
    [configuration, configurationFile(values)],
  ]);
  const result: Initialized = {
    root,
    configuration,
    administrator: hasUsers ? config.get(KEYS.aclAdminUser) : null,
    ...(hasUsers ? { passwordFile } : {}),
    ...(hasUsers && asked === null ? { password } : {}),
    checks,
  };
  process.stdout.write(given.json ? `${JSON.stringify(result)}\n` : described(result));
  return checks.some(({ level }) => level === 'error') ? 1 : 0;
}

/** Checks the settings as the server does, so that the written file is usable. */
function validated(set: readonly string[], password: string): Config {
  const settings = [
    `${KEYS.aclEnabled.name}=true`,
    ...set,
    `${KEYS.aclAdminPassword.name}=${password}`,
    `${KEYS.configStrict.name}=true`,
  ];
  try {
    const config = loadConfig({ set: settings });
    refuseInsecureListeners(config);
    return config;
  } catch (error) {
    throw error instanceof StartError
      ? error
      : new StartError(reasonOf(error), EXIT_CONFIG, { cause: error });
  }
}

function splitSetting(setting: string): [string, string] {
  const at = setting.indexOf('=');
  return [setting.slice(0, at).trim(), setting.slice(at + 1).trim()];
}

/** Writes all files or none. */
function writeFiles(root: string, files: readonly (readonly [path: string, text: string])[]): void {
  const written: string[] = [];
  try {
    makeDirectory(root);
    for (const [path, text] of files) {
      makeDirectory(dirname(path));
      // The flag makes the write fail if the file already exists.
      writeFileSync(path, text, { mode: MODE, flag: 'wx' });
      written.push(path);
    }
  } catch (error) {
    for (const path of written) {
      rmSync(path, { force: true });
    }
    throw new StartError(`cannot write the configuration to '${root}': ${reasonOf(error)}`, 1, {
      cause: error,
    });
  }
}

/** Returns the password of the arguments; `null` if one is to be generated. */
async function readPassword(given: InitArguments): Promise<string | null> {
  const { passwordFile, prompt } = given;
  if (prompt) {
    if (!process.stdin.isTTY) {
      throw new StartError('--prompt requires a terminal, use --password-file', EXIT_USAGE);
    }
    const first = await ask('administrator password: ');
    if (first !== (await ask('repeat the password: '))) {
      throw new StartError('the passwords differ', EXIT_USAGE);
    }
    return usable(first, '--prompt');
  }
  if (passwordFile === undefined) {
    return null;
  }
  try {
    const text = readFileSync(passwordFile === '-' ? 0 : passwordFile, 'utf8');
    return usable(text.replace(/\r?\n$/, ''), '--password-file');
  } catch (error) {
    if (error instanceof StartError) {
      throw error;
    }
    const message = `--password-file: cannot read '${passwordFile}': ${reasonOf(error)}`;
    throw new StartError(message, EXIT_USAGE, { cause: error });
  }
}

function usable(password: string, option: string): string {
  if (password.trim() !== password || password === '' || /[\r\n]/.test(password)) {
    const expected = 'expected one line without spaces at its ends';
    throw new StartError(`${option}: ${expected}`, EXIT_USAGE);
  }
  if (password === KEYS.aclAdminPassword.defaultText) {
    throw new StartError(`${option}: the default password is not allowed`, EXIT_USAGE);
  }
  return password;
}

/** Reads a line from the terminal without showing it. */
async function ask(question: string): Promise<string> {
  process.stderr.write(question);
  const silent = new Writable({
    write: (_chunk, _encoding, done) => {
      done();
    },
  });
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return await new Promise((resolve, reject) => {
      lines.once('line', resolve);
      lines.once('SIGINT', () => {
        reject(new StartError('cancelled'));
      });
      lines.once('close', () => {
        reject(new StartError('no password was entered', EXIT_USAGE));
      });
    });
  } finally {
    lines.close();
    process.stderr.write('\n');
  }
}

function described(result: Initialized): string {
  const { root, configuration, administrator, password, passwordFile, checks } = result;
  const login =
    administrator === null
      ? ['administrator  none: acl.enabled=false']
      : [
          `administrator  ${administrator}`,
          ...(password === undefined ? [] : [`password       ${password}`]),
          `password file  ${passwordFile ?? ''}`,
        ];
  const custom =
    configuration === join(root, 'conf', 'server.conf') ? '' : ` --config ${configuration}`;
  return [
    `configuration  ${configuration}`,
    ...login,
    ...checks.map(({ level, check, text }) => `${level.padEnd(7)}        ${check}: ${text}`),
    `start with     tidemark serve --root ${root}${custom}`,
    '',
  ].join('\n');
}
