/** Content negotiation. */

/** A content coding by its registered name. */
export type Coding = 'zstd' | 'br' | 'gzip';

/** Minimum length of a response to compress; shorter ones do not benefit. */
export const MIN_COMPRESSED_BYTES = 1024;

/**
 * Chooses the coding in `offered` that has the highest quality in `Accept-Encoding: accepted`. Of
 * several equal codings, the first wins. Returns `null` if the response must not be compressed. A
 * coding must be named explicitly; `*` does not count.
 */
export function chooseCoding<const Offered extends Coding>(
  accepted: string | readonly string[] | undefined,
  offered: readonly Offered[],
): Offered | null {
  if (accepted === undefined) {
    return null;
  }
  const ratings = readRatings(typeof accepted === 'string' ? accepted : accepted.join(','));
  // A coding is not used if the client prefers the uncompressed response.
  let best = ratings.get('identity') ?? 0;
  let chosen: Offered | null = null;
  for (const coding of offered) {
    const rating = ratings.get(coding) ?? 0;
    if (rating > best || (rating === best && rating > 0 && chosen === null)) {
      best = rating;
      chosen = coding;
    }
  }
  return chosen;
}

/** Parses `gzip;q=0.5, br` into each name's quality; an unreadable quality counts as 0. */
function readRatings(header: string): Map<string, number> {
  const ratings = new Map<string, number>();
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...traits] = item.split(';').map((part) => part.trim());
    const quality = traits.find((trait) => trait.startsWith('q='))?.slice(2) ?? '1';
    const rating = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(quality) ? Number(quality) : 0;
    ratings.set(name === 'x-gzip' ? 'gzip' : name, rating);
  }
  return ratings;
}
