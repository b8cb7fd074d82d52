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

interface Spot {
  readonly page: PageName;
  /** The object that the page shows; empty if the page does not show a single object. */
  readonly subject: string;
  /** Whether the URL names the page; false if the page is the default. */
  readonly isNamed: boolean;
}

const [spot, setSpot] = createSignal<Spot>(spotOf(location.hash));
export { spot };

addEventListener('hashchange', () => setSpot(spotOf(location.hash)));

/** The page that a URL fragment names. A fragment that names no page belongs to the workspace. */
function spotOf(hash: string): Spot {
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
  setSpot(spotOf(location.hash));
}

/** Activates a page, unless the URL names a page that is not active yet. */
export function openFirst(page: PageName): void {
  if (!spotOf(location.hash).isNamed) {
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
