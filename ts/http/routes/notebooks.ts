/**
 * Console notebooks, stored for users who log in. A save names the version that it changed. If
 * there is a newer version, the save is refused with 409, so that nothing is lost.
 */
import { identityKey } from '../../auth/index.js';
import { type Config, KEYS } from '../../config/index.js';
import {
  type NotebookLimits,
  NotebookRefusal,
  NotebookStore,
  type Person,
  type Share,
} from '../../notebooks/index.js';
import { allowing } from '../../session/index.js';
import type { HttpPaths } from '../paths.js';
import { principalOf } from '../response/statement-answer.js';
import { answer, type HttpContext, type HttpServices, JSON_TYPE, type Route } from '../route.js';

/** Maximum size in bytes of a request that sets a notebook's users and its link. */
const ACCESS_BYTES = 64 * 1024;
const LINK_BYTES = 1024;
const ABOUT = 'stores console notebooks of users who log in ([Notebooks](notebooks.md))';

const STATUSES: Readonly<Record<NotebookRefusal['reason'], number>> = {
  invalid: 400,
  denied: 403,
  absent: 404,
  outdated: 409,
  'too large': 413,
  full: 507,
};

/**
 * Whether the server stores notebooks. Without logins they would be shared by everyone, so the
 * browser stores them instead.
 */
export function storesNotebooks({ config, authenticator }: HttpServices): boolean {
  return config.get(KEYS.notebooksEnabled) && authenticator.required;
}

type Answer = object | readonly object[];

export function notebookRoutes(services: HttpServices, paths: HttpPaths): Route[] {
  const store = new NotebookStore(services.sessions.database, limitsOf(services.config));
  const maxBytes = services.config.get(KEYS.notebooksSize);
  return [...textRoutes(store, paths, maxBytes), ...sharingRoutes(store, paths, services)].map(
    (spec) => routeOf(spec, services),
  );
}

interface Spec {
  readonly path: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly work: (context: HttpContext, person: Person) => Promise<Answer>;
  readonly limitBytes?: number;
  readonly writes?: boolean;
  readonly status?: number;
}

function routeOf(spec: Spec, services: HttpServices): Route {
  const { path, method, limitBytes, writes, status = 200 } = spec;
  return {
    path,
    methods: [method],
    access: 'data',
    errors: 'json',
    about: ABOUT,
    ...(limitBytes === undefined ? {} : { body: { kind: 'bytes', limitBytes } }),
    handle: (context) =>
      reply(context, status, async () => {
        if (!storesNotebooks(services)) {
          const who = 'notebooks require a login and notebooks.enabled=true';
          throw new NotebookRefusal('absent', who);
        }
        if (writes === true && services.config.get(KEYS.httpReadOnly)) {
          throw new NotebookRefusal('denied', 'this server is read-only over HTTP');
        }
        return await spec.work(context, personOf(context, services));
      }),
  };
}

function textRoutes(
  store: NotebookStore,
  { notebooks, notebook }: HttpPaths,
  limitBytes: number,
): Spec[] {
  return [
    { path: notebooks, method: 'GET', work: async (_, person) => await store.list(person) },
    {
      path: notebooks,
      method: 'POST',
      limitBytes,
      writes: true,
      status: 201,
      work: (context, person) => store.create(person, titleOf(context), textOf(context)),
    },
    {
      path: notebook,
      method: 'GET',
      work: (context, person) => {
        const [id, known] = [idOf(context), numberOf(context, 'known')];
        return known === undefined
          ? store.read(person, id, numberOf(context, 'version'))
          : store.openIfChanged(person, id, known);
      },
    },
    {
      path: notebook,
      method: 'PUT',
      limitBytes,
      writes: true,
      work: (context, person) => {
        const based = numberOf(context, 'version');
        if (based === undefined) {
          throw new NotebookRefusal(
            'invalid',
            'missing version: expected the version that was edited',
          );
        }
        const [id, title] = [idOf(context), titleOf(context)];
        return store.save(person, { id, based, title, text: textOf(context) });
      },
    },
    {
      path: `${notebook}/versions`,
      method: 'GET',
      work: async (context, person) =>
        (await store.versions(person, idOf(context))).map(({ number, at, by, title }) => ({
          version: number,
          changed: new Date(at).toISOString(),
          changedBy: by,
          title,
        })),
    },
  ];
}

function sharingRoutes(
  store: NotebookStore,
  { notebook }: HttpPaths,
  services: HttpServices,
): Spec[] {
  const note = (context: HttpContext, what: string): void => {
    services.sessions.guard?.ran(principalOf(context, false), what, { command: 'NOTEBOOK' });
  };
  return [
    {
      path: notebook,
      method: 'DELETE',
      writes: true,
      work: async (context, person) => {
        const removed = await store.remove(person, idOf(context));
        note(context, `notebook ${removed.id} deleted: ${removed.title}`);
        return removed;
      },
    },
    {
      path: `${notebook}/access`,
      method: 'PUT',
      limitBytes: ACCESS_BYTES,
      writes: true,
      work: async (context, person) => {
        const { shares, link } = sharingOf(context, services);
        const shared = await store.share(person, idOf(context), shares, link);
        const names = shares.map(({ name, access }) => `${name} (${access})`).join(', ');
        note(context, `notebook ${shared.id} shared: ${names || 'with no one'}; link: ${link}`);
        return shared;
      },
    },
    {
      // The link is sent in the body, because anyone who knows it can read the notebook.
      path: `${notebook}/linked`,
      method: 'POST',
      limitBytes: LINK_BYTES,
      work: (context, person) => store.readLinked(person, textOf(context).trim()),
    },
  ];
}

function limitsOf(config: Config): NotebookLimits {
  return {
    textBytes: () => config.get(KEYS.notebooksSize),
    count: () => config.get(KEYS.notebooksCount),
    versions: () => config.get(KEYS.notebooksVersions),
    ownerBytes: () => config.get(KEYS.notebooksUserSize),
    totalBytes: () => config.get(KEYS.notebooksTotalSize),
  };
}

/** Sends the result of `work`, or its error. */
export async function reply(
  context: HttpContext,
  status: number,
  work: () => Promise<Answer>,
): Promise<void> {
  try {
    answer(context, status, JSON_TYPE, JSON.stringify(await work()));
  } catch (error) {
    if (!(error instanceof NotebookRefusal)) {
      throw error;
    }
    const { message, now } = error;
    const body = JSON.stringify({ error: message, ...(now === undefined ? {} : { now }) });
    answer(context, STATUSES[error.reason], JSON_TYPE, body);
  }
}

function personOf({ state }: HttpContext, { directory }: HttpServices): Person {
  const { identity } = state;
  if (identity === null) {
    throw new NotebookRefusal('denied', 'notebooks are stored only for users who log in');
  }
  return {
    key: identityKey(identity),
    name: identity.name,
    groups: directory?.groupKeys(identity) ?? [],
    // Without a directory, the only local user is the configured user.
    isAdmin: directory?.isAdministrator(identity) ?? identity.kind !== 'external',
  };
}

function idOf({ state }: HttpContext): string {
  const id = state.parameters.get('id') ?? '';
  if (id === '') {
    throw new NotebookRefusal('invalid', 'missing id');
  }
  return id;
}

function numberOf({ state }: HttpContext, name: 'version' | 'known'): number | undefined {
  const text = state.parameters.get(name);
  if (text !== undefined && !/^[1-9]\d{0,14}$/.test(text)) {
    throw new NotebookRefusal('invalid', `invalid ${name} '${text}': expected a whole number`);
  }
  return text === undefined ? undefined : Number(text);
}

function titleOf({ state }: HttpContext): string {
  const { parameters } = state;
  const title = parameters.isInvalid('title') ? undefined : parameters.get('title');
  if (title === undefined) {
    throw new NotebookRefusal('invalid', 'missing title');
  }
  return title;
}

export function textOf({ state }: HttpContext): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(state.body);
  } catch {
    throw new NotebookRefusal('invalid', 'the body is not valid UTF-8');
  }
}

interface Sharing {
  readonly shares: readonly Share[];
  readonly link: boolean;
}

const FORM = 'expected {"shares":[{"name":"…","access":"read" or "write"}],"link":true or false}';

function sharingOf(context: HttpContext, services: HttpServices): Sharing {
  const invalid = (what: string): NotebookRefusal => new NotebookRefusal('invalid', what);
  let sent: { shares?: unknown; link?: unknown } | null;
  try {
    sent = JSON.parse(textOf(context)) as typeof sent;
  } catch {
    throw invalid(FORM);
  }
  const shares: unknown = sent?.shares;
  if (!Array.isArray(shares) || typeof sent?.link !== 'boolean') {
    throw invalid(FORM);
  }
  const byName = new Map<string, Share>();
  for (const entry of shares as readonly unknown[]) {
    const { name, access } = (entry ?? {}) as { name?: unknown; access?: unknown };
    if (typeof name !== 'string' || name === '' || (access !== 'read' && access !== 'write')) {
      throw invalid(FORM);
    }
    byName.set(name, shareOf(context, services, name, access));
  }
  return { shares: [...byName.values()], link: sent.link };
}

/**
 * A user who may not list users must not learn which names exist. For such a user, an unknown name
 * is therefore accepted but has no effect.
 */
function shareOf(
  context: HttpContext,
  { directory, sessions }: HttpServices,
  name: string,
  access: Share['access'],
): Share {
  const principal = directory?.principal(name) ?? null;
  const { guard } = sessions;
  const may =
    guard === undefined ||
    allowing(guard, principalOf(context, false))({ table: '', columns: [], permission: LISTS });
  if (principal === null && may) {
    throw new NotebookRefusal('invalid', `user, group or service account '${name}' does not exist`);
  }
  return may && principal !== null
    ? { name, access, ...principal }
    : { name, access, key: principal?.key ?? '', kind: '' };
}

const LISTS = 'LIST USERS';
