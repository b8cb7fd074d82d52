/**
 * Variants of a statement with one clause removed: each optional field of the tree, each list item
 * and each flag in turn. The fields come from the generated types, so new fields are included
 * automatically.
 */
import { readFileSync } from 'node:fs';

import { parse, print, type Tree } from '../../../ts/sql/index.js';

interface Removal {
  /** The field as node kind and name: `SelectNode.filter`. */
  readonly field: string;
  /** The statement without the clause. */
  readonly text: string;
}

const TYPES = readFileSync(
  new URL('../../../../ts/sql/ast.generated.ts', import.meta.url),
  'utf8',
).replaceAll(/\/\*[^]*?\*\//g, '');

const fields = (pattern: RegExp): ReadonlySet<string> =>
  new Set([...TYPES.matchAll(pattern)].map(([, name = '']) => name));

const OPTIONAL = fields(/(\w+): [^;{}]*\| null/g);
const LISTS = fields(/(\w+): Array</g);
const FLAGS = fields(/(\w+): boolean/g);

/** Fields that describe how a statement is spelled rather than what it means. */
const SPELLING = new Set([
  'quoted',
  'double_colon',
  'bare',
  'hint',
  'recursive',
  'overridable',
  'path',
]);

type Path = readonly (string | number)[];

/**
 * Returns the statement with each of its clauses removed in turn, except those that the syntax
 * requires.
 */
export function removals(text: string): readonly Removal[] {
  const tree = parse(text);
  const complete = print(tree);
  const found: Removal[] = [];
  const seen = new Set([complete]);
  tree.nodes.forEach((node, index) => {
    for (const { path, put } of locations(node, ['nodes', index])) {
      const changed = structuredClone(tree);
      put(changed);
      const shorter = printed(changed);
      if (shorter !== null && !seen.has(shorter)) {
        seen.add(shorter);
        const name = path.filter((step) => typeof step === 'string').slice(1);
        found.push({ field: [node.kind, ...name].join('.'), text: shorter });
      }
    }
  });
  return found;
}

interface Location {
  readonly path: Path;
  readonly put: (tree: Tree) => void;
}

function* locations(value: unknown, path: Path): Generator<Location> {
  if (typeof value !== 'object' || value === null) {
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    const here = [...path, Array.isArray(value) ? Number(name) : name];
    if (SPELLING.has(name)) {
      continue;
    }
    if (Array.isArray(inner) && LISTS.has(name) && inner.length > 0) {
      yield locationOf(here, []);
      for (const [index] of inner.entries()) {
        yield locationOf(here, inner.toSpliced(index, 1));
      }
    } else if (inner === true && FLAGS.has(name)) {
      yield locationOf(here, false);
    } else if (inner !== null && typeof inner !== 'boolean' && OPTIONAL.has(name)) {
      yield locationOf(here, null);
    }
    yield* locations(inner, here);
  }
}

function locationOf(path: Path, value: unknown): Location {
  const put = (tree: Tree): void => {
    set(tree, path, value);
  };
  return { path, put };
}

function set(tree: Tree, path: Path, value: unknown): void {
  let at = tree as unknown as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) {
    at = at[step] as Record<string | number, unknown>;
  }
  at[path.at(-1) ?? ''] = structuredClone(value);
}

/** Returns a tree's SQL; null if there is no SQL for it. */
function printed(tree: Tree): string | null {
  try {
    const text = print(tree);
    return print(parse(text)) === text ? text : null;
  } catch {
    return null;
  }
}
