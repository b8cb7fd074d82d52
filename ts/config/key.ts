/** Defines configuration keys, and creates keys of each kind. */
import type { OpenOptions } from '../border/types.generated.js';
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

/** The type of a value, with its unit. */
type KeyKind =
  'boolean' | 'integer' | 'size' | 'duration' | 'text' | 'secret' | 'endpoint' | 'list' | 'choice';

/** Engine options whose value has this type. */
type EngineOption<T> = {
  readonly [Name in keyof OpenOptions]-?: [T] extends [OpenOptions[Name]] ? Name : never;
}[keyof OpenOptions];

export interface Key<T> {
  readonly name: string;
  /** Older spellings of the same key. */
  readonly aliases: readonly string[];
  readonly kind: KeyKind;
  readonly defaultText: string;
  readonly doc: string;
  /** Whether a change takes effect without a restart. */
  readonly reloadable: boolean;
  /** Whether the key does not exist in QuestDB. Its environment name starts with `TIDEMARK_`. */
  readonly own: boolean;
  /**
   * The engine option that receives the value, if any. If the default is 0, the engine chooses the
   * value when the key is 0.
   */
  readonly engine?: keyof OpenOptions;
  readonly parse: (text: string) => T;
}

/** Optional properties of any key. */
type Trait = Partial<Pick<Key<unknown>, 'aliases' | 'reloadable' | 'own'>>;

type Traits<T> = Trait & { readonly engine?: EngineOption<T> };

export function key<T>(
  name: string,
  kind: KeyKind,
  defaultText: string,
  parse: (text: string) => T,
  doc: string,
  traits: Traits<T> = {},
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

export function bool(
  name: string,
  fallback: boolean,
  doc: string,
  traits?: Traits<boolean>,
): Key<boolean> {
  return key(name, 'boolean', String(fallback), parseBoolean, doc, traits);
}

export function integer(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits<number>,
): Key<number> {
  return key(name, 'integer', fallback, parseInteger, doc, traits);
}

/**
 * Creates a key for a size in bytes. Zero lets the engine choose, if the key's documentation says
 * so.
 */
export function size(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits<number>,
): Key<number> {
  return key(name, 'size', fallback, parseSize, doc, traits);
}

export function duration(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits<number>,
): Key<number> {
  return key(name, 'duration', fallback, (text) => parseDurationMs(text), doc, traits);
}

export function seconds(name: string, fallback: string, doc: string): Key<number> {
  return key(name, 'duration', fallback, (text) => parseDurationMs(text, 1000), doc);
}

export function text(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits<string>,
): Key<string> {
  return key(name, 'text', fallback, (value) => value, doc, traits);
}

export function secret(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits<string>,
): Key<string> {
  return key(name, 'secret', fallback, (value) => value, doc, traits);
}

export function endpoint(
  name: string,
  fallback: string,
  doc: string,
  traits?: Traits<Endpoint>,
): Key<Endpoint> {
  return key(name, 'endpoint', fallback, parseEndpoint, doc, traits);
}

export function list(
  name: string,
  doc: string,
  traits?: Traits<readonly string[]>,
): Key<readonly string[]> {
  return key(name, 'list', '', parseList, doc, traits);
}

export function choice<const T extends string>(
  name: string,
  fallback: NoInfer<T>,
  options: readonly T[],
  doc: string,
  traits?: Traits<T>,
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

export const OWN: Trait = { own: true };
export const RELOAD: Trait = { reloadable: true };
