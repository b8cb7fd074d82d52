/** The types of the grammar table: numbered items with example statements. */

/** State of an item. */
type Kind =
  /** Parses, prints back, and runs. */
  | 'works'
  /** Accepted but has no effect, because it tunes a feature that this database does not have. */
  | 'no effect'
  /** Parses and prints back; another chapter covers how it executes. */
  | 'elsewhere'
  /** Refused on purpose, with an error that has a position. */
  | 'refused'
  /** A rule about results, limits or files that has no syntax. */
  | 'rule';

export interface Item {
  /** Number as `section.number`. */
  readonly id: string;
  readonly title: string;
  readonly kind: Kind;
  /** Statements in order. With `refused`, only the last one must fail. */
  readonly statements: readonly string[];
  /** For `elsewhere`, the chapter; for `rule`, the test that verifies it. */
  readonly remark: string;
  /** Whether the item needs a server with users and grants. */
  readonly hasUsers?: true;
}

export interface Section {
  readonly number: number;
  readonly title: string;
  readonly items: readonly Item[];
}

type Entry = Omit<Item, 'id'>;

const entry =
  (kind: Kind) =>
  (title: string, ...statements: string[]): Entry => ({ title, kind, statements, remark: '' });

export const works = entry('works');
export const noEffect = entry('no effect');
export const refused = entry('refused');

/** Creates an item that runs on a server with users and grants. */
export function worksWithUsers(title: string, ...statements: string[]): Entry {
  return { ...works(title, ...statements), hasUsers: true };
}

export function elsewhere(chapter: string, title: string, ...statements: string[]): Entry {
  return { title, kind: 'elsewhere', statements, remark: chapter };
}

export function rule(title: string, proof: string, ...statements: string[]): Entry {
  return { title, kind: 'rule', statements, remark: proof };
}

/** Creates a section whose items are numbered by their order, from 1. */
export function section(number: number, title: string, ...entries: Entry[]): Section {
  const items = entries.map((one, index) => ({ id: `${number}.${index + 1}`, ...one }));
  return { number, title, items };
}
