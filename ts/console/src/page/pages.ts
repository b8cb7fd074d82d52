/**
 * The active page. It is stored in the URL fragment, so that back, reload and bookmarks work. A
 * page may name one object after a slash: `#tables/trades`.
 */
import { createSignal } from 'solid-js';

const PAGES = [
  'sql',
  'tables',
  'import',
  'queries',
  'jobs',
  'notebooks',
  'access',
  'start',
] as const;
export type PageName = (typeof PAGES)[number];

interface Route {
  readonly page: PageName;
  /** The object that the page shows; empty if the page does not show a single object. */
  readonly subject: string;
  /** Whether the URL names the page; false if the page is the default. */
  readonly isNamed: boolean;
}

const [route, setRoute] = createSignal<Route>(routeOf(location.hash));
export { route };

addEventListener('hashchange', () => setRoute(routeOf(location.hash)));

/** The page that a URL fragment names. A fragment that names no page belongs to the workspace. */
function routeOf(hash: string): Route {
  const [name = '', ...rest] = hash.replace(/^#/, '').split('/');
  const page = PAGES.find((known) => known === name);
  if (!page) {
    return { page: 'sql', subject: '', isNamed: hash.length > 1 };
  }
  return { page, subject: decoded(rest.join('/')), isNamed: true };
}

export function addressOf(page: PageName, subject = ''): string {
  return subject === '' ? `#${page}` : `#${page}/${encodeURIComponent(subject)}`;
}

/** Activates a page. */
export function openPage(page: PageName, subject = ''): void {
  location.hash = addressOf(page, subject);
  setRoute(routeOf(location.hash));
}

/** Activates a page, unless the URL names a page that is not active yet. */
export function openFirst(page: PageName): void {
  if (!routeOf(location.hash).isNamed) {
    openPage(page);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
