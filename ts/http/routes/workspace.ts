/**
 * The signed-in user's console workspace: tabs, drafts and query log. It is saved even if HTTP is
 * read-only, because saving it changes no data.
 */
import { identityKey } from '../../auth/index.js';
import { KEYS } from '../../config/index.js';
import { NotebookRefusal, WorkspaceStore, type WorkspaceChanges } from '../../notebooks/index.js';
import type { HttpPaths } from '../paths.js';
import type { HttpContext, HttpServices, Route } from '../route.js';
import { reply, textOf } from './notebooks.js';

const MAX_CHANGES_BYTES = 4 * 1024 * 1024;
const ABOUT = 'stores the console workspace of a user who logs in: tabs, drafts, query log';

export function workspaceRoutes(services: HttpServices, { workspace }: HttpPaths): Route[] {
  const { config, sessions } = services;
  const store = new WorkspaceStore(sessions.database, {
    userBytes: () => config.get(KEYS.workspaceUserSize),
    totalBytes: () => config.get(KEYS.workspaceTotalSize),
  });
  const route = { path: workspace, access: 'data', errors: 'json', about: ABOUT } as const;
  return [
    {
      ...route,
      methods: ['GET'],
      handle: (context) => reply(context, 200, () => store.read(userOf(context))),
    },
    {
      ...route,
      methods: ['POST'],
      body: { kind: 'bytes', limitBytes: MAX_CHANGES_BYTES },
      handle: (context) =>
        reply(context, 200, async () => {
          const id = context.state.parameters.get('id') ?? '';
          await store.write(userOf(context), id, changesOf(textOf(context)));
          return {};
        }),
    },
  ];
}

function userOf({ state }: HttpContext): string {
  if (state.identity === null) {
    throw new NotebookRefusal('absent', 'workspaces are stored only for users who log in');
  }
  return identityKey(state.identity);
}

const FORM = 'expected {"put":{"tab/1":{"changed":1000,…}},"remove":["tab/2"]}';

function changesOf(text: string): WorkspaceChanges {
  const { put, remove } = parsed(text);
  if (!isObject(put) || !Array.isArray(remove)) {
    throw new NotebookRefusal('invalid', FORM);
  }
  const entries = new Map<string, { changed: number }>();
  for (const [name, entry] of Object.entries(put)) {
    if (!isObject(entry) || !isTime(entry['changed'])) {
      throw new NotebookRefusal('invalid', FORM);
    }
    entries.set(name, { ...entry, changed: entry['changed'] });
  }
  if (!remove.every((name): name is string => typeof name === 'string')) {
    throw new NotebookRefusal('invalid', FORM);
  }
  return { put: entries, remove };
}

function parsed(text: string): { put?: unknown; remove?: unknown } {
  try {
    return (JSON.parse(text) as object | null) ?? {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
