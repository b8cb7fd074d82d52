/** What the client can take. */

/** A content coding by its registered name. */
export type Coding = 'zstd' | 'br' | 'gzip';

/**
 * The coding of an answer to `Accept-Encoding: accepted`, or `null` for none: of those `offered`
 * the one the client rates highest, the first of equals. A coding must be asked for by name; `*`
 * is content with none.
 */
export function chooseCoding<const Offered extends Coding>(
  accepted: string | readonly string[] | undefined,
  offered: readonly Offered[],
): Offered | null {
  if (accepted === undefined) {
    return null;
  }
  const ratings = readRatings(typeof accepted === 'string' ? accepted : accepted.join(','));
  // A client that rates the plain answer wants it where a coding is rated lower.
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

/** `gzip;q=0.5, br` → each name with its quality; what cannot be read rates 0. */
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
