/** Recomputes the hash chain of an audit log from its lines. */
import { createHash } from 'node:crypto';

const FIRST = '0'.repeat(64);

/**
 * Returns the first line of an audit log that was modified, or null if all lines are intact.
 * Several files are concatenated, oldest first. The hash before the oldest line is not checked.
 */
export function brokenLine(text: string): number | null {
  let previous: string | null = null;
  const lines = text.split('\n').filter((line) => line !== '');
  for (const [index, line] of lines.entries()) {
    const entry = parsed(line);
    if (entry === null) {
      return index + 1;
    }
    const { hash, ...rest } = entry;
    const expected = previous ?? (rest.sequence === 1 ? FIRST : rest.previous);
    if (rest.previous !== expected || digest(JSON.stringify(rest)) !== hash) {
      return index + 1;
    }
    previous = hash;
  }
  return null;
}

interface Entry {
  readonly sequence: number;
  readonly previous: string;
  readonly hash: string;
}

function parsed(line: string): Entry | null {
  try {
    const entry = JSON.parse(line) as Partial<Entry>;
    const isWhole = typeof entry.hash === 'string' && typeof entry.sequence === 'number';
    return isWhole ? (entry as Entry) : null;
  } catch {
    return null;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
