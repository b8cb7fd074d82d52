/**
 * Caches data for repeated SQL text. A syntax tree does not depend on tables, so it is never stale.
 * A bound query is checked before it is used.
 */
import { LRUCache } from 'lru-cache';

import { type LiftedQuery, liftLiterals } from '../engine/literals.js';
import type { Access, Statement } from '../engine/types.js';
import type { Statement as ReadStatement, Tree } from '../sql/index.js';
import { type Dispatch, dispatch } from './dispatch.js';
import { readsSequenceValues } from './sequence-values.js';
import { asSyntaxError } from './error.js';
import { type Operated, operated } from './operations.js';
import { type TemporaryTable, temporaryTable } from './temporary.js';

/** Parses SQL text into a syntax tree; throws an error with `message`, `start` and `end`. */
export type Parse = (text: string) => ReadStatement;

/** Parsed SQL text. */
export interface ParsedStatement {
  readonly text: string;
  /** The statement's runner. */
  readonly dispatch: Dispatch;
  /** The syntax tree as JSON in UTF-8. */
  readonly tree: Buffer;
  /** Operations that the server performs at every execution; `null` for none. */
  readonly operated: Omit<Operated, 'tree'> | null;
  /** The syntax tree if the statement reads lists of users and permissions; otherwise `null`. */
  readonly listing: object | null;
  /** Whether the statement reads the session's sequence values. */
  readonly readsSequenceValues: boolean;
  /** The syntax tree if the statement creates a view, which needs an owner; otherwise `null`. */
  readonly view: object | null;
  /** The setting that the statement shows, if any. */
  readonly shows: string | null;
  /** The query with a locking clause: `SELECT FOR UPDATE`; `null` without such a clause. */
  readonly locking: string | null;
  /** The temporary table that the statement creates, if any. */
  readonly temporary: TemporaryTable | null;
  /** The statement's accesses to the server itself rather than to tables. */
  readonly accesses: readonly Access[];
  /**
   * The parameterised query, which the members above describe; `null` if they describe `text`
   * itself.
   */
  readonly lifted: LiftedQuery | null;
}

/** Functions that determine properties of a syntax tree. */
interface TreeQuestions {
  /** Whether the tree reads lists of users and permissions. */
  readsLists(tree: object): boolean;
  /** Whether the tree creates a view. */
  makesView(tree: object): boolean;
  /** Returns a tree's accesses to the server itself rather than to tables. */
  serverAccesses(tree: object): readonly Access[];
}

const NO_QUESTIONS: TreeQuestions = {
  readsLists: () => false,
  makesView: () => false,
  serverAccesses: () => [],
};

/** Maximum total size of cached SQL text and syntax trees, in bytes. */
const CACHE_BYTES = 32 * 1024 * 1024;
/**
 * Maximum length of a cached SQL text. Longer texts are almost always a single large INSERT, which
 * does not repeat.
 */
const MAX_CACHED_TEXT_LENGTH = 64 * 1024;
/** Maximum number of bound queries; each may have a plan of about 10 KiB until the next commit. */
const MAX_QUERIES = 512;
/**
 * Maximum number of SQL texts that are remembered after being seen once. It is smaller than the
 * maximum number of queries. The shared plan is therefore still cached when a text repeats.
 */
const MAX_SEEN_ONCE = MAX_QUERIES / 2;
const MAX_REFUSED = 2_048;

export class StatementCache {
  readonly #parse: Parse;
  readonly #questions: TreeQuestions;
  readonly #trees = new LRUCache<string, ParsedStatement>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ tree }, text) => tree.length + 2 * text.length + 64,
  });

  readonly #queries = new LRUCache<string, Statement>({ max: MAX_QUERIES });
  /**
   * SQL texts that were recently seen once. A text that is seen again gets its own plan and cached
   * result.
   */
  readonly #seenOnce = new LRUCache<string, true>({ max: MAX_SEEN_ONCE });
  /** Parameterised queries whose results differ from those of their original texts. */
  readonly #refused = new LRUCache<string, true>({ max: MAX_REFUSED });

  constructor(parse: Parse, questions: TreeQuestions = NO_QUESTIONS) {
    this.#parse = parse;
    this.#questions = questions;
  }

  /**
   * Returns a query's cache key; `null` if the text is too long. `visibility` separates users who
   * see different catalog entries.
   */
  static key(
    user: string,
    readOnly: boolean,
    types: readonly (string | null)[] | undefined,
    text: string,
    visibility = 0,
  ): string | null {
    if (text.length > MAX_CACHED_TEXT_LENGTH) {
      return null;
    }
    const declared = types === undefined ? '' : JSON.stringify(types);
    // The length shows where the name ends in the key.
    const who = `${readOnly ? 'reads' : 'writes'} ${visibility} ${user.length} ${user}`;
    return `${who}${declared} ${text}`;
  }

  /** The query bound under `key`, if it is still current. */
  query(key: string | null): Statement | undefined {
    if (key === null) {
      return undefined;
    }
    const known = this.#queries.get(key);
    if (known?.isCurrent() === false) {
      this.#queries.delete(key);
      return undefined;
    }
    return known;
  }

  /**
   * Shares a query with later preparations that have the same SQL text, user and parameter types,
   * all of which are part of the key. Returns false if the statement cannot be shared. A shared
   * statement is never closed, because another session may be about to run it.
   */
  share(key: string | null, statement: Statement): boolean {
    if (key === null || statement.description.kind !== 'select') {
      return false;
    }
    this.#queries.set(key, statement);
    return true;
  }

  /** Removes the query under `key`, which is outdated. */
  forget(key: string | null): void {
    if (key !== null) {
      this.#queries.delete(key);
    }
  }

  /**
   * Returns the parse result of SQL text. If the text is not cached, its literals are replaced with
   * parameters first.
   */
  parsed(text: string): ParsedStatement {
    if (text.length > MAX_CACHED_TEXT_LENGTH) {
      return this.#parseText(text);
    }
    return this.#trees.get(text) ?? this.#lifted(text) ?? this.plain(text);
  }

  /** Parses SQL text without replacing its literals. */
  plain(text: string): ParsedStatement {
    if (text.length > MAX_CACHED_TEXT_LENGTH) {
      return this.#parseText(text);
    }
    const known = this.#trees.get(text);
    if (known !== undefined) {
      return known;
    }
    const parsed = this.#parseText(text);
    this.#trees.set(text, parsed);
    return parsed;
  }

  /**
   * Returns the cached parse result for the text itself or, if given, for its parameterised query;
   * `null` if it is not cached.
   */
  known(text: string, lifted: LiftedQuery | null): ParsedStatement | null {
    if (lifted === null) {
      return this.#trees.get(text) ?? null;
    }
    const parsed = this.#refused.has(lifted.text) ? undefined : this.#trees.get(lifted.text);
    return parsed === undefined ? null : { ...parsed, text, lifted };
  }

  /**
   * Records that this parameterised query must not be used, because its result differs from that of
   * the original text.
   */
  refuse({ text }: Pick<LiftedQuery, 'text'>): void {
    this.#refused.set(text, true);
  }

  #lifted(text: string): ParsedStatement | null {
    if (this.#seenOnce.has(text)) {
      return null;
    }
    const lifted = liftLiterals(text);
    if (lifted === null || this.#refused.has(lifted.text)) {
      return null;
    }
    this.#seenOnce.set(text, true);
    try {
      const parsed = this.plain(lifted.text);
      return isPlainQuery(parsed) ? { ...parsed, text, lifted } : null;
    } catch {
      return null; // the text itself says what is wrong, and where
    }
  }

  #parseText(text: string): ParsedStatement {
    try {
      const statement = this.#parse(text);
      const { tree } = statement;
      const { tree: bound, calls, parameters } = operated(tree);
      return {
        text,
        dispatch: dispatch(statement),
        tree: Buffer.from(JSON.stringify(bound)),
        operated: calls.length === 0 ? null : { calls, parameters },
        listing: this.#questions.readsLists(tree) ? tree : null,
        readsSequenceValues: readsSequenceValues(tree),
        view: this.#questions.makesView(tree) ? tree : null,
        shows: shownSetting(tree),
        locking: statement.locking ?? null,
        temporary: temporaryTable(tree),
        accesses: this.#questions.serverAccesses(tree),
        lifted: null,
      };
    } catch (error) {
      throw asSyntaxError(error);
    }
  }
}

/** Whether the engine can evaluate the query from table data alone, without the server. */
function isPlainQuery({
  dispatch,
  operated,
  listing,
  readsSequenceValues,
}: ParsedStatement): boolean {
  return (
    dispatch.runner === 'engine' && operated === null && listing === null && !readsSequenceValues
  );
}

/** The setting that a statement shows, in lower case. */
function shownSetting({ nodes, root }: Tree): string | null {
  const node = nodes[root];
  if (node?.kind !== 'Show' || node.subject.subject !== 'Setting') {
    return null;
  }
  return node.subject.words.join(' ').toLowerCase();
}
