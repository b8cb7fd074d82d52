/** Links that carry a text. It follows the `#`, which browsers do not send to servers. */

const MARK = '#query=';

/** The address that opens a text in this console. */
export function linkTo(text: string): string {
  const { origin, pathname } = location;
  return `${origin}${pathname}${MARK}${encodeURIComponent(text)}`;
}

/** The text that the address carries, once: the address forgets it. */
export function takeShared(): string | undefined {
  const { hash, pathname, search } = location;
  if (!hash.startsWith(MARK)) {
    return undefined;
  }
  history.replaceState(null, '', pathname + search);
  try {
    return decodeURIComponent(hash.slice(MARK.length));
  } catch {
    return undefined;
  }
}
