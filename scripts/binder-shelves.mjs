// The shelves of the binder, from the bottom up: a file names nothing and calls no method of
// `Binder` on a shelf above its own. Methods need no import, so no circle of imports shows them.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { codeOf } from './rust-modules.mjs';

const BINDER = 'crates/planner/src/binder';
/** `state` has `Queries`, by which the shelves below `clauses` bind queries. */
const SHELVES = ['state', 'catalog', 'expressions', 'sources', 'clauses', 'statements'];

/** @param {string} root the folder of the repository */
export function shelfProblems(root) {
  const files = SHELVES.flatMap((shelf, level) =>
    readdirSync(join(root, BINDER, shelf), { recursive: true })
      .filter((name) => name.endsWith('.rs'))
      .map((name) => ({ level, name: `${shelf}/${name}` })),
  ).map((file) => ({ ...file, code: codeOf(readFileSync(join(root, BINDER, file.name), 'utf8')) }));
  const levels = new Map();
  for (const { level, code } of files) {
    for (const method of methodsOf(code)) {
      levels.set(method, Math.min(level, levels.get(method) ?? level));
    }
  }
  return files.flatMap(({ level, name, code }) => [
    ...named(code)
      .filter((shelf) => SHELVES.indexOf(shelf) > level)
      .map((shelf) => `${BINDER}/${name} may not name ${shelf}`),
    ...called(code)
      .filter((method) => levels.get(method) > level)
      .map(
        (method) => `${BINDER}/${name} may not call ${method} of ${SHELVES[levels.get(method)]}`,
      ),
  ]);
}

/** The methods that a file adds to `Binder`. */
function methodsOf(code) {
  return [...code.matchAll(/^impl(?:<[^>]*>)? Binder<[^>]*> \{\n([^]*?)^\}/gm)].flatMap(
    ([, body]) =>
      [...body.matchAll(/^ {4}(?:pub(?:\([^)]*\))? )?fn (\w+)/gm)].map(([, method]) => method),
  );
}

function named(code) {
  return [...code.matchAll(/\bbinder::(\w+)::/g)].map(([, shelf]) => shelf);
}

function called(code) {
  const call = /(?<!\w)(?:self|Self|binder|Binder|inner)\s*(?:\.|::)\s*(\w+)(?:::<[^>]*>)?\(/g;
  return [...code.matchAll(call)].map(([, method]) => method);
}
