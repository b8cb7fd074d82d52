/**
 * Loads the configuration. In ascending order of precedence: defaults, `server.conf`, environment,
 * `--set`. An unknown key causes a notice (an error with `config.validation.strict=true`). An
 * invalid value causes an error that names its source.
 */
import { readFileSync, statSync } from 'node:fs';

import type { OpenOptions } from '../border/types.generated.js';
import { parseProperties } from './properties.js';
import { ALL_KEYS, type Key, KEYS } from './registry.js';
import { similarKey } from './similar-key.js';
import { ValueError } from './units.js';

type ValueSource = 'default' | 'conf' | 'env' | 'set' | 'file';

/** Reports an unusable configuration; the message is one line for the operator. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

interface ConfigSources {
  /** Path of `server.conf`. The file may be missing unless `fileRequired`. */
  readonly file?: string;
  readonly fileRequired?: boolean;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** `key=value` arguments from the command line. */
  readonly set?: readonly string[];
}

/** One row of `SHOW PARAMETERS`. */
interface Parameter {
  readonly name: string;
  readonly environmentName: string;
  readonly value: string;
  readonly source: ValueSource;
  readonly sensitive: boolean;
  readonly reloadable: boolean;
}

interface Entry {
  readonly value: unknown;
  readonly text: string;
  readonly source: ValueSource;
}

/** Names of the keys that changed since the previous load. */
export interface Reloaded {
  /** Keys whose changes took effect immediately. */
  readonly applied: readonly string[];
  /** Keys whose changes take effect after a restart. */
  readonly waiting: readonly string[];
}

const SECRET_FILE_BYTES = 64 * 1024;
const MASK = '****';

export class Config {
  /** Messages for the log: unknown keys, deprecated spellings. */
  readonly notices: readonly string[];
  readonly #entries: Map<string, Entry>;
  readonly #sources: ConfigSources;

  constructor(
    entries: ReadonlyMap<string, Entry>,
    notices: readonly string[],
    sources: ConfigSources,
  ) {
    this.#entries = new Map(entries);
    this.notices = notices;
    this.#sources = sources;
  }

  /**
   * Reads the configuration file and the secret files again, and applies the reloadable keys.
   * Throws `ConfigError`, or whatever `check` throws for the new configuration; in either case,
   * nothing changes.
   */
  reload(check: (next: Config) => void = () => undefined): Reloaded {
    const read = loadConfig(this.#sources).#entries;
    const changed = ALL_KEYS.filter(({ name }) => {
      const [before, after] = [this.#entries.get(name), read.get(name)];
      return before?.text !== after?.text || before?.source !== after?.source;
    });
    const applied = changed.filter(({ reloadable }) => reloadable).map(({ name }) => name);
    const next = new Map(this.#entries);
    for (const name of applied) {
      const entry = read.get(name);
      if (entry !== undefined) {
        next.set(name, entry);
      }
    }
    check(new Config(next, this.notices, this.#sources));
    for (const [name, entry] of next) {
      this.#entries.set(name, entry);
    }
    const waiting = changed.filter(({ reloadable }) => !reloadable).map(({ name }) => name);
    return { applied, waiting };
  }

  get<T>(key: Key<T>): T {
    // The cast is safe, because `loadConfig` parsed every key with the key's own `parse`.
    return this.#entries.get(key.name)?.value as T;
  }

  source(key: Key<unknown>): ValueSource {
    return this.#entries.get(key.name)?.source ?? 'default';
  }

  parameters(): Parameter[] {
    return ALL_KEYS.map((key) => {
      const sensitive = key.kind === 'secret';
      const text = this.#entries.get(key.name)?.text ?? key.defaultText;
      return {
        name: key.name,
        environmentName: environmentNames(key)[0] ?? '',
        value: sensitive && text !== '' ? MASK : text,
        source: this.source(key),
        sensitive,
        reloadable: key.reloadable,
      };
    });
  }
}

/** Returns the options for opening the engine, from all keys that name an engine option. */
export function engineOptions(config: Config): Partial<OpenOptions> {
  const given = ALL_KEYS.flatMap((key): [string, unknown][] => {
    const value = config.get(key);
    const isLeftOpen = value === 0 && key.defaultText === '0';
    return key.engine === undefined || isLeftOpen ? [] : [[key.engine, value]];
  });
  return Object.fromEntries(given);
}

/**
 * Returns the environment variables for a key, such as `QDB_HTTP_BIND_TO` for `http.bind.to`. For
 * keys that exist only in Tidemark, `TIDEMARK_…` takes precedence.
 */
export function environmentNames(key: Key<unknown>): string[] {
  const tails = [key.name, ...key.aliases].map((name) => name.toUpperCase().replaceAll('.', '_'));
  const spellings = tails.flatMap((tail) =>
    tail.includes('-') ? [tail.replaceAll('-', '_'), tail] : [tail],
  );
  const prefixes = key.own ? ['TIDEMARK_', 'QDB_'] : ['QDB_', 'TIDEMARK_'];
  return prefixes.flatMap((prefix) => spellings.map((spelling) => prefix + spelling));
}

export function loadConfig(sources: ConfigSources = {}): Config {
  return new Loader(sources).load(sources);
}

/** A value as a string, and its source. */
interface SettingText {
  readonly text: string;
  readonly source: ValueSource;
  /** Source of the value, for error messages. */
  readonly origin: string;
}

class Loader {
  readonly #file: Map<string, string>;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  readonly #set: Map<string, string>;
  readonly #fileName: string;

  constructor(sources: ConfigSources) {
    this.#fileName = sources.file ?? 'server.conf';
    this.#file = readPropertiesFile(sources.file, sources.fileRequired ?? false);
    this.#environment = sources.environment ?? {};
    this.#set = new Map((sources.set ?? []).map(splitSetting));
  }

  load(sources: ConfigSources): Config {
    const entries = new Map<string, Entry>();
    for (const key of ALL_KEYS) {
      entries.set(key.name, this.#entry(key));
    }
    const unknown = this.#unknownKeys();
    if (entries.get(KEYS.configStrict.name)?.value === true && unknown.length > 0) {
      const names = unknown.map(({ name, hint }) => (hint === '' ? name : `${name} (${hint})`));
      throw new ConfigError(`unknown configuration keys: ${names.join(', ')}`);
    }
    const notices = unknown.map(({ name, hint }) => {
      const notice = `configuration key '${name}' is unsupported and ignored`;
      return hint === '' ? notice : `${notice}; ${hint}`;
    });
    return new Config(entries, notices, sources);
  }

  #entry(key: Key<unknown>): Entry {
    const setting = this.#find(key);
    if (setting === null) {
      return { value: key.parse(key.defaultText), text: key.defaultText, source: 'default' };
    }
    try {
      return { value: key.parse(setting.text), text: setting.text, source: setting.source };
    } catch (error) {
      if (error instanceof ValueError) {
        throw new ConfigError(`${key.name} (${setting.origin}): ${error.message}`);
      }
      throw error;
    }
  }

  #find(key: Key<unknown>): SettingText | null {
    const names = [key.name, ...key.aliases];
    if (key.kind === 'secret') {
      const fromFile = this.#findSecretFile(key, names);
      if (fromFile !== null) {
        return fromFile;
      }
    }
    return (
      this.#fromSet(names) ?? this.#fromEnvironment(environmentNames(key)) ?? this.#fromFile(names)
    );
  }

  /**
   * Reads a secret from the file that the key's `.file` form names. This form takes precedence over
   * the direct form, regardless of where the direct form is set.
   */
  #findSecretFile(key: Key<unknown>, names: readonly string[]): SettingText | null {
    const fileNames = names.map((name) => `${name}.file`);
    const path =
      this.#fromSet(fileNames) ??
      this.#fromEnvironment(environmentNames(key).map((name) => `${name}_FILE`)) ??
      this.#fromFile(fileNames);
    if (path === null) {
      return null;
    }
    return { text: readSecret(path.text, key.name), source: 'file', origin: path.text };
  }

  #fromSet(names: readonly string[]): SettingText | null {
    const name = names.find((candidate) => this.#set.has(candidate));
    const text = name === undefined ? undefined : this.#set.get(name);
    return text === undefined ? null : { text, source: 'set', origin: '--set' };
  }

  #fromEnvironment(names: readonly string[]): SettingText | null {
    for (const name of names) {
      const text = this.#environment[name];
      if (text !== undefined) {
        return { text, source: 'env', origin: name };
      }
    }
    return null;
  }

  #fromFile(names: readonly string[]): SettingText | null {
    const name = names.find((candidate) => this.#file.has(candidate));
    const text = name === undefined ? undefined : this.#file.get(name);
    return text === undefined ? null : { text, source: 'conf', origin: this.#fileName };
  }

  /** Returns the unknown keys, each with a hint that names the most similar known key. */
  #unknownKeys(): UnknownName[] {
    const written = [...this.#file.keys(), ...this.#set.keys()];
    const variables = Object.keys(this.#environment).filter((name) => name.startsWith('QDB_'));
    const known = ALL_KEYS.flatMap(environmentNames).flatMap((name) => [name, `${name}_FILE`]);
    return [...unknownIn(written, settingNames()), ...unknownIn(variables, new Set(known))];
  }
}

/** A name that is not known, and a hint that names the most similar known one, or is empty. */
export interface UnknownName {
  readonly name: string;
  readonly hint: string;
}

export function unknownIn(names: readonly string[], known: ReadonlySet<string>): UnknownName[] {
  return names
    .filter((name) => !known.has(name))
    .map((name) => {
      const similar = similarKey(name, known);
      return { name, hint: similar === null ? '' : `did you mean '${similar}'?` };
    });
}

/** Returns all names that the configuration file and `--set` accept. */
function settingNames(): Set<string> {
  const names = ALL_KEYS.flatMap(({ name, aliases }) => [name, ...aliases]);
  return new Set(names.flatMap((name) => [name, `${name}.file`]));
}

/** Returns the unknown keys of settings such as `http.bind.to=127.0.0.1:0`. */
export function unknownSettings(settings: readonly string[]): UnknownName[] {
  return unknownIn(
    settings.map((setting) => splitSetting(setting)[0]),
    settingNames(),
  );
}

function splitSetting(setting: string): [string, string] {
  const at = setting.indexOf('=');
  if (at < 1) {
    throw new ConfigError(`--set expects key=value, found '${setting}'`);
  }
  return [setting.slice(0, at).trim(), setting.slice(at + 1).trim()];
}

function readPropertiesFile(path: string | undefined, required: boolean): Map<string, string> {
  if (path === undefined) {
    return new Map();
  }
  try {
    return parseProperties(readFileSync(path, 'utf8'));
  } catch (error) {
    if (!required && isMissing(error)) {
      return new Map();
    }
    throw new ConfigError(`cannot read the configuration '${path}': ${reasonOf(error)}`);
  }
}

function readSecret(path: string, keyName: string): string {
  const refuse = (reason: string): never => {
    throw new ConfigError(`${keyName}: cannot use the secret file '${path}': ${reason}`);
  };
  if (path.split('/').includes('..') || /^\/(dev|proc|sys)(\/|$)/.test(path)) {
    return refuse('this path is not allowed');
  }
  let secret: string | null;
  try {
    const stats = statSync(path);
    const isUsable = stats.isFile() && stats.size <= SECRET_FILE_BYTES;
    secret = isUsable ? readFileSync(path, 'utf8').trim() : null;
  } catch (error) {
    return refuse(reasonOf(error));
  }
  return secret ?? refuse('expected a regular file of at most 64 KB');
}

/**
 * A path below a regular file (ENOTDIR) also counts as missing. Code that needs a directory there
 * reports the problem.
 */
function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Shortens `ENOENT: no such file or directory, open '…'` to `no such file or directory`. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return /^[A-Z]+: ([^,]+)/.exec(message)?.[1] ?? message;
}
