/** Client for the notebooks stored on the server. */
import { call, SqlError } from './client.js';

export interface Sharing {
  readonly name: string;
  readonly access: 'read' | 'write';
}

/** An entry of the notebook list. */
export interface Listed {
  readonly id: string;
  readonly title: string;
  readonly owner: string;
  readonly mine: boolean;
  readonly access: 'own' | 'write' | 'read';
  readonly version: number;
  /** Time of the last change, in ISO 8601 format. */
  readonly changed: string;
  readonly changedBy: string;
  /** Sharing settings of the notebook. Present only if the caller may share the notebook. */
  readonly shares?: readonly Sharing[];
  readonly link?: string | null;
}

export interface Opened extends Listed {
  readonly text: string;
}

export interface Version {
  readonly version: number;
  readonly changed: string;
  readonly changedBy: string;
  readonly title: string;
}

/** Thrown if the notebook was saved elsewhere in the meantime. */
export class Outdated extends Error {
  readonly now: Listed;

  constructor(message: string, now: Listed) {
    super(message);
    this.name = 'Outdated';
    this.now = now;
  }
}

const ALL = 'api/v1/notebooks';
const ONE = 'api/v1/notebook';

interface Refusal {
  readonly error?: string;
  readonly now?: Listed;
}

async function request<T>(
  address: string,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE' = 'GET',
  body?: string,
): Promise<T> {
  const answer = await call(address, { method, ...(body === undefined ? {} : { body }) });
  const { error, now } = answer.body as Refusal;
  if (now !== undefined && answer.status === 409) {
    throw new Outdated(error ?? '', now);
  }
  if (error !== undefined) {
    throw new SqlError(error, undefined, answer.status);
  }
  return answer.body as T;
}

function address(path: string, parameters: Readonly<Record<string, string | number>>): string {
  const pairs = Object.entries(parameters).map(([name, value]) => [name, String(value)]);
  return `${path}?${new URLSearchParams(pairs)}`;
}

export const list = (): Promise<readonly Listed[]> => request(ALL);

/** Opens the current version of a notebook, or the given older version. */
export const open = (id: string, version?: number): Promise<Opened> =>
  request(address(ONE, { id, ...(version === undefined ? {} : { version }) }));

/**
 * Returns the current version of a notebook. The content is omitted if `known` is already current.
 */
export const poll = (id: string, known: number): Promise<Listed & Partial<Opened>> =>
  request(address(ONE, { id, known }));

export const openLinked = (link: string): Promise<Opened> => request(`${ONE}/linked`, 'POST', link);

export const create = (title: string, text: string): Promise<Listed> =>
  request(address(ALL, { title }), 'POST', text);

/** Saves a notebook. Throws `Outdated` if `version` is not the current version. */
export const save = (
  id: string,
  version: number,
  { title, text }: { readonly title: string; readonly text: string },
): Promise<Listed> => request(address(ONE, { id, version, title }), 'PUT', text);

export const remove = (id: string): Promise<Listed> => request(address(ONE, { id }), 'DELETE');

export const versions = (id: string): Promise<readonly Version[]> =>
  request(address(`${ONE}/versions`, { id }));

export const share = (id: string, shares: readonly Sharing[], link: boolean): Promise<Listed> =>
  request(
    address(`${ONE}/access`, { id }),
    'PUT',
    JSON.stringify({ shares: shares.map(({ name, access }) => ({ name, access })), link }),
  );
