/**
 * Which page is in front. The address keeps it behind the `#`, so that back, reload and bookmarks
 * work; a page may name one thing behind a slash: `#tables/trades`.
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
  /** What the page shows, where it shows one thing of many; otherwise empty. */
  readonly subject: string;
  /** Whether the address names the page, rather than the page being the first by default. */
  readonly isNamed: boolean;
}

const [spot, setSpot] = createSignal<Spot>(spotOf(location.hash));
export { spot };

addEventListener('hashchange', () => setSpot(spotOf(location.hash)));

/** The page an address means; anything else after a `#` belongs to the workspace. */
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

/** Brings a page to the front. */
export function openPage(page: PageName, subject = ''): void {
  location.hash = addressOf(page, subject);
  setSpot(spotOf(location.hash));
}

/** Brings a page to the front, unless the address names one that is not in front yet. */
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
