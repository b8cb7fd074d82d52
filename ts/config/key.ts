/** What a configuration key is, and how keys of each kind are made. */
import {
  type Endpoint,
  parseBoolean,
  parseDurationMs,
  parseEndpoint,
  parseInteger,
  parseList,
  parseSize,
  ValueError,
} from './units.js';

/** What a value means, with its unit. */
export type KeyKind =
  'boolean' | 'integer' | 'size' | 'duration' | 'text' | 'secret' | 'endpoint' | 'list' | 'choice';

export interface Key<T> {
  readonly name: string;
  /** Older spellings of the same key. */
  readonly aliases: readonly string[];
  readonly kind: KeyKind;
  readonly defaultText: string;
  readonly doc: string;
  /** Takes effect without a restart. */
  readonly reloadable: boolean;
  /** Not a key of QuestDB; its environment form begins with `TIDEMARK_`. */
  readonly own: boolean;
  readonly parse: (text: string) => T;
}

export type Traits = Partial<Pick<Key<unknown>, 'aliases' | 'reloadable' | 'own'>>;

export function key<T>(
  name: string,
  kind: KeyKind,
  defaultText: string,
  parse: (text: string) => T,
  doc: string,
  traits: Traits = {},
): Key<T> {
  return {
    name,
    kind,
    defaultText,
    parse,
    doc,
    aliases: [],
    reloadable: false,
    own: false,
    ...traits,
  };
}

export function bool(name: string, fallback: boolean, doc: string, traits?: Traits): Key<boolean> {
  return key(name, 'boolean', String(fallback), parseBoolean, doc, traits);
}

export function integer(name: string, fallback: string, doc: string, traits?: Traits): Key<number> {
  return key(name, 'integer', fallback, parseInteger, doc, traits);
}

/** Zero stands for the engine's own choice where the doc says so. */
export function size(name: string, fallback: string, doc: string, traits?: Traits): Key<number> {
  return key(name, 'size', fallback, parseSize, doc, traits);
}

export function duration(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits,
): Key<number> {
  return key(name, 'duration', fallback, (text) => parseDurationMs(text), doc, traits);
}

export function seconds(name: string, fallback: string, doc: string): Key<number> {
  return key(name, 'duration', fallback, (text) => parseDurationMs(text, 1000), doc);
}

export function text(name: string, fallback: string, doc: string, traits?: Traits): Key<string> {
  return key(name, 'text', fallback, (value) => value, doc, traits);
}

export function secret(name: string, fallback: string, doc: string, traits?: Traits): Key<string> {
  return key(name, 'secret', fallback, (value) => value, doc, traits);
}

export function endpoint(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits,
): Key<Endpoint> {
  return key(name, 'endpoint', fallback, parseEndpoint, doc, traits);
}

export function list(name: string, doc: string, traits?: Traits): Key<readonly string[]> {
  return key(name, 'list', '', parseList, doc, traits);
}

export function choice<const T extends string>(
  name: string,
  fallback: NoInfer<T>,
  options: readonly T[],
  doc: string,
  traits?: Traits,
): Key<T> {
  const parse = (value: string): T => {
    const found = options.find((option) => option === value.trim().toLowerCase());
    if (found === undefined) {
      throw new ValueError(`expected one of ${options.join(', ')}, found '${value}'`);
    }
    return found;
  };
  return key(name, 'choice', fallback, parse, doc, traits);
}

export const OWN: Traits = { own: true };
export const RELOAD: Traits = { reloadable: true };
