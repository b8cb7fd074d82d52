/**
 * The statements of the golden cases, and the errors that the parser finds without names and types.
 */
import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../../../test/golden/', import.meta.url);

interface Refused {
  readonly id: string;
  readonly text: string;
  readonly position: number;
  readonly message: string;
}

interface GoldenStatements {
  /** Statements that run; all of them must parse. */
  readonly accepted: readonly string[];
  /** Statements that fail with a position. Most fail only when names and types are resolved. */
  readonly refused: readonly Refused[];
}

interface SqlLine {
  readonly id: string;
  readonly setup?: readonly string[];
  readonly sql: string;
  readonly error?: string;
  readonly position?: number;
}

interface HttpCase {
  readonly id: string;
  readonly setup?: readonly unknown[];
  readonly request?: { readonly params?: readonly (readonly [string, unknown])[] };
  readonly expect?: { readonly body?: unknown };
}

export function goldenStatements(): GoldenStatements {
  const accepted = new Set<string>();
  const refused: Refused[] = [];
  readSqlCases(accepted, refused);
  readHttpCases(accepted, refused);
  return { accepted: [...accepted], refused };
}

function readSqlCases(accepted: Set<string>, refused: Refused[]): void {
  const superseded = readJson('sql/superseded.json') as Record<string, string>;
  const names = readdirSync(new URL('sql/', FOLDER)).filter((name) => name.endsWith('.jsonl'));
  for (const name of names) {
    const lines = readFileSync(new URL(`sql/${name}`, FOLDER), 'utf8').split('\n');
    for (const line of lines.filter((text) => text.trim() !== '')) {
      const { id, setup = [], sql, error, position = -1 } = JSON.parse(line) as SqlLine;
      for (const text of setup) {
        accepted.add(text);
      }
      if (error === undefined) {
        accepted.add(sql);
      } else if (!(id in superseded)) {
        refused.push({ id, text: sql, position, message: error });
      }
    }
  }
}

function readHttpCases(accepted: Set<string>, refused: Refused[]): void {
  const superseded = readJson('http/superseded.json') as Record<string, string>;
  for (const name of ['exec', 'exp', 'imp']) {
    for (const one of readJson(`http/${name}.json`) as readonly HttpCase[]) {
      if (one.id in superseded || one.id.startsWith('exp-parquet')) {
        continue;
      }
      for (const text of one.setup ?? []) {
        if (typeof text === 'string') {
          accepted.add(text);
        }
      }
      const body = typeof one.expect?.body === 'string' ? one.expect.body : '';
      const failure = /"error":"((?:[^"\\]|\\.)*)","position":(\d+)/.exec(body);
      for (const [key, value] of one.request?.params ?? []) {
        if (key !== 'query' || typeof value !== 'string' || value.trim() === '') {
          continue;
        }
        if (!body.includes('"error"')) {
          accepted.add(value);
        }
        if (failure === null || body.includes('/exp endpoint')) {
          continue;
        }
        const message = failure[1] ?? '';
        refused.push({ id: one.id, text: value, position: Number(failure[2]), message });
      }
    }
  }
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, FOLDER), 'utf8'));
}
