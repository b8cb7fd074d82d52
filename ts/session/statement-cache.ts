/**
 * What is kept for texts that come again: the syntax tree, which knows nothing of tables and so
 * never goes stale, and the bound query, which is asked whether it is current before it is used.
 */
import { LRUCache } from 'lru-cache';

import { type LiftedQuery, liftLiterals } from '../engine/literals.js';
import type { Access, Statement } from '../engine/types.js';
import type { Statement as ReadStatement, Tree } from '../sql/index.js';
import { type Dispatch, dispatch } from './dispatch.js';
import { asksNumbers } from './drawn-numbers.js';
import { asSyntaxError } from './error.js';
import { type Operated, operated } from './operations.js';
import { type TemporaryTable, temporaryTable } from './temporary.js';

/** Text to syntax tree; throws an error with `message`, `start` and `end`. */
export type Parse = (text: string) => ReadStatement;

/** A text as it was read. */
export interface ParsedStatement {
  readonly text: string;
  /** Who runs it. */
  readonly dispatch: Dispatch;
  /** The tree as JSON in UTF-8, as the border takes it. */
  readonly tree: Buffer;
  /** What the server itself does at every execution; null where that is nothing. */
  readonly operated: Omit<Operated, 'tree'> | null;
  /** The tree itself, when it asks for lists of users and rights. */
  readonly listing: object | null;
  /** Whether it asks for the numbers that the session's rows were given. */
  readonly asksNumbers: boolean;
  /** The tree itself, when it makes a view, which needs an owner. */
  readonly view: object | null;
  /** The setting that it shows. */
  readonly shows: string | null;
  /** The temporary table that it makes. */
  readonly temporary: TemporaryTable | null;
  /** What it takes for what it does with the server itself. */
  readonly accesses: readonly Access[];
  /** The query with parameters that all the others are of; null where they are of `text`. */
  readonly lifted: LiftedQuery | null;
}

/** What is looked for in a tree. */
interface TreeQuestions {
  /** Whether it asks for lists of users and rights. */
  asksLists(tree: object): boolean;
  /** Whether it makes a view. */
  makesView(tree: object): boolean;
  /** What it takes for what it does with the server itself. */
  serverAccesses(tree: object): readonly Access[];
}

const NO_QUESTIONS: TreeQuestions = {
  asksLists: () => false,
  makesView: () => false,
  serverAccesses: () => [],
};

/** Bytes of texts and trees together. */
const CACHE_BYTES = 32 * 1024 * 1024;
/** Longer texts are almost always one large INSERT: they do not come again. */
const MAX_CACHED_TEXT_LENGTH = 64 * 1024;
/** Bound queries; each may hold a plan of some 10 KiB until the next commit. */
const MAX_QUERIES = 512;
/** Fewer than queries, so that the plan of a text that comes again is still there the next time. */
const MAX_SEEN = MAX_QUERIES / 2;
const MAX_REFUSED = 2_048;

export class StatementCache {
  readonly #parse: Parse;
  readonly #questions: TreeQuestions;
  readonly #trees = new LRUCache<string, ParsedStatement>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ tree }, text) => tree.length + 2 * text.length + 64,
  });

  readonly #queries = new LRUCache<string, Statement>({ max: MAX_QUERIES });
  /** Texts that came once lately. One that comes again has a plan and an answer of its own. */
  readonly #seen = new LRUCache<string, true>({ max: MAX_SEEN });
  /** Queries with parameters that answer as others than the texts they were made of. */
  readonly #refused = new LRUCache<string, true>({ max: MAX_REFUSED });

  constructor(parse: Parse, questions: TreeQuestions = NO_QUESTIONS) {
    this.#parse = parse;
    this.#questions = questions;
  }

  /**
   * What a text's query is kept under; null for a text that is too long to be kept. `visibility`
   * tells apart those who see different parts of the catalog.
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
    // The length tells where a name ends.
    const who = `${readOnly ? 'reads' : 'writes'} ${visibility} ${user.length} ${user}`;
    return `${who}${declared} ${text}`;
  }

  /** The query bound before under `key`, if it is current. */
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
   * Shares a query with its next preparation: same text, user and parameter types, which are
   * all in the key. False for what does not come again. A shared statement is never closed:
   * another may be about to run it.
   */
  share(key: string | null, statement: Statement): boolean {
    if (key === null || statement.description.kind !== 'select') {
      return false;
    }
    this.#queries.set(key, statement);
    return true;
  }

  /** What came under `key` is no longer true. */
  forget(key: string | null): void {
    if (key !== null) {
      this.#queries.delete(key);
    }
  }

  /** What a text says; of one that comes for the first time, by the query it is one of. */
  parsed(text: string): ParsedStatement {
    if (text.length > MAX_CACHED_TEXT_LENGTH) {
      return this.#parseText(text);
    }
    return this.#trees.get(text) ?? this.#lifted(text) ?? this.plain(text);
  }

  /** What a text says, with its literals in it. */
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

  /** What was read lately of a text, or of the query it is lifted to; null where that is none. */
  known(text: string, lifted: LiftedQuery | null): ParsedStatement | null {
    if (lifted === null) {
      return this.#trees.get(text) ?? null;
    }
    const parsed = this.#refused.has(lifted.text) ? undefined : this.#trees.get(lifted.text);
    return parsed === undefined ? null : { ...parsed, text, lifted };
  }

  /** A query with parameters answers as another one than the texts it was made of. */
  refuse({ text }: Pick<LiftedQuery, 'text'>): void {
    this.#refused.set(text, true);
  }

  #lifted(text: string): ParsedStatement | null {
    if (this.#seen.has(text)) {
      return null;
    }
    const lifted = liftLiterals(text);
    if (lifted === null || this.#refused.has(lifted.text)) {
      return null;
    }
    this.#seen.set(text, true);
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
        listing: this.#questions.asksLists(tree) ? tree : null,
        asksNumbers: asksNumbers(tree),
        view: this.#questions.makesView(tree) ? tree : null,
        shows: shownSetting(tree),
        temporary: temporaryTable(tree),
        accesses: this.#questions.serverAccesses(tree),
        lifted: null,
      };
    } catch (error) {
      throw asSyntaxError(error);
    }
  }
}

/** Whether nothing but the engine answers it, by what is in tables. */
function isPlainQuery({ dispatch, operated, listing, asksNumbers }: ParsedStatement): boolean {
  return dispatch.runner === 'engine' && operated === null && listing === null && !asksNumbers;
}

/** The setting that a statement shows, in lower case. */
function shownSetting({ nodes, root }: Tree): string | null {
  const node = nodes[root];
  if (node?.kind !== 'Show' || node.subject.subject !== 'Setting') {
    return null;
  }
  return node.subject.words.join(' ').toLowerCase();
}
