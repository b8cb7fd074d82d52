/** What is kept of a notebook, and what people learn of it. */
import { DatabaseError } from '../session/index.js';

/** Who asks. */
export interface Person {
  /** Tells people apart, whatever they are called. */
  readonly key: string;
  readonly name: string;
  /** Keys of the groups that the person is in. */
  readonly groups: readonly string[];
  /** Has the rights of every owner. */
  readonly isAdmin: boolean;
}

type ShareAccess = 'read' | 'write';

/** A user, a service account or a group that may read or write. */
export interface Share {
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  readonly access: ShareAccess;
}

export interface Version {
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Who saved it. */
  readonly by: string;
  readonly title: string;
  /** As kept: compressed. */
  readonly bytes: number;
  /** SHA-256 of the text, in hexadecimal. */
  readonly digest: string;
}

/** A notebook without its texts; one record. */
export interface StoredNotebook {
  readonly id: string;
  readonly owner: Pick<Person, 'key' | 'name'>;
  /** The oldest first; the last is the current one. Never empty. */
  readonly versions: readonly Version[];
  readonly shares: readonly Share[];
  /** Those who have this, and may log in, may read. */
  readonly link: string | null;
}

/** What may be done with a notebook: `own` is everything. */
export type Reach = 'own' | ShareAccess;

/** A notebook as its readers see it in a list. */
export interface Listed {
  readonly id: string;
  readonly title: string;
  readonly owner: string;
  /** Whether it is the asking person's own. */
  readonly mine: boolean;
  readonly access: Reach;
  readonly version: number;
  readonly changed: string;
  readonly changedBy: string;
  /** For its owner alone, as is the link. */
  readonly shares?: readonly Pick<Share, 'kind' | 'name' | 'access'>[];
  readonly link?: string | null;
}

export function current({ versions }: StoredNotebook): Version {
  const last = versions.at(-1);
  if (last === undefined) {
    throw new DatabaseError({ code: 'Internal', message: 'a notebook without a version' });
  }
  return last;
}

/** What `person` may do; null: nothing, not even know of it. */
export function reachOf(notebook: StoredNotebook, person: Person): Reach | null {
  if (person.isAdmin || notebook.owner.key === person.key) {
    return 'own';
  }
  const shared = notebook.shares.filter(
    ({ key }) => key === person.key || person.groups.includes(key),
  );
  if (shared.length === 0) {
    return null;
  }
  return shared.some(({ access }) => access === 'write') ? 'write' : 'read';
}

export function listed(notebook: StoredNotebook, person: Person, access: Reach): Listed {
  const { id, owner, shares, link } = notebook;
  const { number, at, by, title } = current(notebook);
  return {
    id,
    title,
    owner: owner.name,
    mine: owner.key === person.key,
    access,
    version: number,
    changed: new Date(at).toISOString(),
    changedBy: by,
    ...(access === 'own'
      ? { shares: shares.map(({ kind, name, access: given }) => ({ kind, name, access: given })) }
      : {}),
    ...(access === 'own' ? { link } : {}),
  };
}

/** Why something cannot be done with a notebook. */
export class NotebookRefusal extends Error {
  readonly reason: 'invalid' | 'denied' | 'absent' | 'outdated' | 'too large' | 'full';
  /** Of `outdated`: what there is instead. */
  readonly now: Listed | undefined;

  constructor(reason: NotebookRefusal['reason'], message: string, now?: Listed) {
    super(message);
    this.name = 'NotebookRefusal';
    this.reason = reason;
    this.now = now;
  }
}

const MAX_TITLE_LENGTH = 80;
/** Line ends, and characters that turn the direction of a text or are not to be seen. */
const UNFIT = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

export function checkTitle(title: string): string {
  const kept = title.trim();
  if (kept === '' || kept.length > MAX_TITLE_LENGTH || UNFIT.test(kept)) {
    const form = `1 to ${MAX_TITLE_LENGTH} characters, without control characters`;
    throw new NotebookRefusal('invalid', `invalid title: expected ${form}`);
  }
  return kept;
}
