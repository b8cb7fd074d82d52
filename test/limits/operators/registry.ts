/** Names of all operators, in the source code and in plans. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { TestServer } from '../../golden/server.js';
import { setUp } from '../../sql/grammar/states.js';
import { ITEMS } from '../../sql/grammar/index.js';
import { send } from '../client.js';

const CRATES = fileURLToPath(new URL('../../../../crates', import.meta.url));

interface Source {
  readonly file: string;
  readonly code: string;
}

function sources(): readonly Source[] {
  return readdirSync(CRATES, { recursive: true, encoding: 'utf8' })
    .filter((file) => /^\w+\/src\/.*\.rs$/.test(file))
    .map((file) => {
      const [code = ''] = readFileSync(join(CRATES, file), 'utf8').split('\n#[cfg(test)]\nmod ');
      return { file, code };
    });
}

/**
 * Returns the EXPLAIN names declared in the source code, and the files whose operator does not
 * declare one.
 */
export function namesInSources(): {
  readonly names: readonly string[];
  readonly without: readonly string[];
} {
  const names = new Set<string>();
  const without: string[] = [];
  for (const { file, code } of sources()) {
    const stated = [...code.matchAll(/"(\w+Exec)"/g)].map(([, name = '']) => name);
    stated.forEach((name) => names.add(name));
    if (/\bimpl Operator for\b/.test(code) && stated.length === 0) {
      without.push(file);
    }
  }
  return { names: [...names].sort(), without };
}

/**
 * Returns the types that implement DataFusion's trait directly. Any type that is not in a list is a
 * newly added operator.
 */
export function planNodes(): readonly string[] {
  return sources()
    .flatMap(({ code }) => [...code.matchAll(/\bimpl ExecutionPlan for (\w+)/g)])
    .map(([, name = '']) => name)
    .sort();
}

/** Returns the operators in EXPLAIN output. */
export function operatorsIn(lines: readonly (readonly unknown[])[]): readonly string[] {
  return lines
    .flat()
    .map((line) => /^\s*(\w+Exec)\b/.exec(String(line))?.[1])
    .filter((name) => name !== undefined);
}

const IS_QUERY = /^\s*(?:\(|select|with|declare|t\b|r\b)/i;

/** Returns the operators in the plans of all grammar table queries. */
export async function namesInPlans(server: TestServer): Promise<readonly string[]> {
  await setUp(server.url);
  const names = new Set<string>();
  const items = ITEMS.filter(({ hasUsers, kind }) => hasUsers !== true && kind === 'works');
  for (const text of items.flatMap(({ statements }) => statements)) {
    if (IS_QUERY.test(text)) {
      const { rows } = await send(server, `explain ${text}`);
      operatorsIn(rows).forEach((name) => names.add(name));
    }
  }
  return [...names].sort();
}
