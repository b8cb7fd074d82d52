/**
 * The active page. The URL fragment stores it, so that the back button, reload and bookmarks work.
 * The fragment may name one object after a slash: `#tables/trades`.
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
  /** False if the URL has no fragment, so that the default page is shown. */
  readonly isNamed: boolean;
}

const [route, setRoute] = createSignal<Route>(routeOf(location.hash));
export { route };

addEventListener('hashchange', () => setRoute(routeOf(location.hash)));

/** Parses a URL fragment. A fragment that names no known page opens the SQL page. */
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

export function openPage(page: PageName, subject = ''): void {
  location.hash = addressOf(page, subject);
  setRoute(routeOf(location.hash));
}

/** Opens a page, unless the URL already has a fragment. */
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
