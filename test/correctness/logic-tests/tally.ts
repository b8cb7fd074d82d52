/**
 * Results of a suite's records: counts, findings, and results that depend on a refused statement.
 */
import type { Position } from './records.js';
import type { Failure } from './wire.js';

const VERDICTS = ['equal', 'refused', 'wrong', 'internal', 'accepted', 'skipped'] as const;
/** `accepted`: the statement succeeded although the suite expects an error. */
type Verdict = (typeof VERDICTS)[number];

export const DEPENDS = 'depends on a statement that was not run as expected';
/**
 * SQLSTATE of a statement that fails because an earlier statement in the same block was refused.
 */
export const FAILED_BLOCK = '25P02';

interface Finding {
  readonly verdict: Verdict;
  readonly at: Position;
  readonly sql: string;
  /** The class of the error, the difference, or the reason for skipping. */
  readonly why: string;
}

type Counts = Record<Verdict, number>;

export class Tally {
  readonly counts: Counts = {
    equal: 0,
    refused: 0,
    wrong: 0,
    internal: 0,
    accepted: 0,
    skipped: 0,
  };
  readonly findings: Finding[] = [];

  note(verdict: Verdict, at: Position, sql: string, why = ''): void {
    this.counts[verdict] += 1;
    if (verdict !== 'equal') {
      this.findings.push({ verdict, at, sql, why });
    }
  }

  add(other: Tally): void {
    for (const verdict of VERDICTS) {
      this.counts[verdict] += other.counts[verdict];
    }
    this.findings.push(...other.findings);
  }

  line(): string {
    return VERDICTS.map((verdict) => `${verdict} ${String(this.counts[verdict])}`).join(', ');
  }
}

const UNKNOWN_FUNCTION = '42883';

/** Returns the SQLSTATE and message without details specific to the statement. */
export function classOf({ code, message }: Failure): string {
  if (code === UNKNOWN_FUNCTION) {
    return `${code} ${message.replace(/\(.*/s, '')}`;
  }
  const general = message
    .replace(/'[^']*'|"[^"]*"|`[^`]*`/g, '…')
    .replace(/\[[^\]]*\]/g, '[…]')
    .replace(/\b\d[\d.]*\b/g, 'N')
    .replace(/(:\s*)\S.*$/, '$1…');
  return `${code} ${general}`.slice(0, 100);
}

const TARGET = new RegExp(
  '\\b(?:TABLE|VIEW|INTO|UPDATE|MACRO|FUNCTION|TYPE|SEQUENCE|SCHEMA|TRIGGER|DELETE\\s+FROM|COPY|' +
    'PREPARE)\\s+(?:IF\\s+(?:NOT\\s+)?EXISTS\\s+)?(?:ONLY\\s+)?("[^"]+"|[\\w.]+)',
  'gi',
);
const CREATES = /^\s*CREATE\b.*?\b(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?("[^"]+"|[\w.]+)/is;

/** Tables and other objects whose state may be unexpected because a statement did not run. */
export class Unsettled {
  readonly #names = new Set<string>();

  add(sql: string): void {
    for (const [, name = ''] of sql.matchAll(TARGET)) {
      this.#names.add(plain(name));
    }
  }

  /** A re-created table has the expected state again, provided that its source tables do. */
  settle(sql: string): void {
    const [, name] = CREATES.exec(sql) ?? [];
    if (name !== undefined) {
      this.#names.delete(plain(name));
      if (this.touches(sql)) {
        this.#names.add(plain(name));
      }
    }
  }

  touches(sql: string): boolean {
    return [...sql.matchAll(/"[^"]+"|\w+/g)].some(([word]) => this.#names.has(plain(word)));
  }
}

function plain(name: string): string {
  const last = name.split('.').at(-1) ?? name;
  return last.replace(/"/g, '').toLowerCase();
}
