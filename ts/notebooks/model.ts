/** Stored notebooks, and the form in which users receive them. */
import { DatabaseError } from '../session/index.js';

/** The requesting user. */
export interface Person {
  /** Key that identifies the user independently of the name. */
  readonly key: string;
  readonly name: string;
  /** Keys of the user's groups. */
  readonly groups: readonly string[];
  /** Whether the user has the same rights as every owner. */
  readonly isAdmin: boolean;
}

type ShareAccess = 'read' | 'write';

/** A user, service account or group with read or write access. */
export interface Share {
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  readonly access: ShareAccess;
}

export interface Version {
  readonly number: number;
  /** Time of the save, in milliseconds since 1970. */
  readonly at: number;
  /** The user who saved the version. */
  readonly by: string;
  readonly title: string;
  /** Size of the compressed text in bytes. */
  readonly bytes: number;
  /** SHA-256 of the text in hexadecimal. */
  readonly digest: string;
}

/** A notebook's record, without its texts. */
export interface StoredNotebook {
  readonly id: string;
  readonly owner: Pick<Person, 'key' | 'name'>;
  /** Versions, oldest first; the last one is current. Never empty. */
  readonly versions: readonly Version[];
  readonly shares: readonly Share[];
  /** Token of the notebook's link. Any user who may log in can use it to read the notebook. */
  readonly link: string | null;
}

/** Access to a notebook; `own` includes everything. */
export type Reach = 'own' | ShareAccess;

/** A notebook in a user's list. */
export interface Listed {
  readonly id: string;
  readonly title: string;
  readonly owner: string;
  /** Whether the requesting user owns it. */
  readonly mine: boolean;
  readonly access: Reach;
  readonly version: number;
  readonly changed: string;
  readonly changedBy: string;
  /** Present only for the owner, as is the link. */
  readonly shares?: readonly Pick<Share, 'kind' | 'name' | 'access'>[];
  readonly link?: string | null;
}

export function current({ versions }: StoredNotebook): Version {
  const last = versions.at(-1);
  if (last === undefined) {
    throw new DatabaseError({ code: 'Internal', message: 'the notebook has no version' });
  }
  return last;
}

/**
 * Returns the access of `person`. Returns `null` if the person has none and must not learn that the
 * notebook exists.
 */
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
      ? { shares: shares.map(({ kind, name, access }) => ({ kind, name, access })) }
      : {}),
    ...(access === 'own' ? { link } : {}),
  };
}

/** Thrown to refuse an operation on a notebook, with the reason. */
export class NotebookRefusal extends Error {
  readonly reason: 'invalid' | 'denied' | 'absent' | 'outdated' | 'too large' | 'full';
  /** For `outdated`: the current version. */
  readonly now: Listed | undefined;

  constructor(reason: NotebookRefusal['reason'], message: string, now?: Listed) {
    super(message);
    this.name = 'NotebookRefusal';
    this.reason = reason;
    this.now = now;
  }
}

const MAX_TITLE_LENGTH = 80;
/** Line ends, and characters that change text direction or are invisible. */
const UNFIT = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

export function checkTitle(title: string): string {
  const trimmed = title.trim();
  if (trimmed === '' || trimmed.length > MAX_TITLE_LENGTH || UNFIT.test(trimmed)) {
    const form = `1 to ${MAX_TITLE_LENGTH} characters, without control characters`;
    throw new NotebookRefusal('invalid', `invalid title: expected ${form}`);
  }
  return trimmed;
}
