/** The shape of the grammar table: numbered items with statements that show them. */

/** What becomes of an item. */
type Kind =
  /** Parses, is printed back, and runs. */
  | 'works'
  /** Accepted; has no effect here, because it tunes something this database does not have. */
  | 'no effect'
  /** Parses and is printed back; running it belongs to a chapter of its own. */
  | 'elsewhere'
  /** Refused on purpose, with an error that names the place. */
  | 'refused'
  /** A rule about results, limits or files rather than a form of text. */
  | 'rule';

export interface Item {
  /** `section.number`. */
  readonly id: string;
  readonly title: string;
  readonly kind: Kind;
  /** Run in order; with `refused` the last one must fail, the others must not. */
  readonly statements: readonly string[];
  /** `elsewhere`: the chapter. `rule`: what holds it true. */
  readonly remark: string;
  /** Needs a server with users and grants. */
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

/** Runs where there are users and grants. */
export function worksWithUsers(title: string, ...statements: string[]): Entry {
  return { ...works(title, ...statements), hasUsers: true };
}

export function elsewhere(chapter: string, title: string, ...statements: string[]): Entry {
  return { title, kind: 'elsewhere', statements, remark: chapter };
}

export function rule(title: string, proof: string, ...statements: string[]): Entry {
  return { title, kind: 'rule', statements, remark: proof };
}

/** Items are numbered by their order, from 1. */
export function section(number: number, title: string, ...entries: Entry[]): Section {
  const items = entries.map((one, index) => ({ id: `${number}.${index + 1}`, ...one }));
  return { number, title, items };
}
