// Checks the order of folders inside a crate. A file must not refer to a folder above its own, nor
// call a method that a higher folder adds to the order's `type`. Such a call needs no import, so it
// would not show up as an import cycle.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { codeOf, imports } from './rust-modules.mjs';

/**
 * Folder orders, from the lowest to the highest. `isWhole`: whether every module in the root must
 * be listed. `receivers`: names of variables that have the type, as used in method calls.
 */
const ORDERS = [
  {
    root: 'crates/planner/src/binder',
    // `state` contains `Queries`, through which the folders below `clauses` bind queries.
    folders: ['state', 'catalog', 'expressions', 'sources', 'clauses', 'statements'],
    type: 'Binder',
    receivers: ['self', 'Self', 'binder', 'Binder', 'inner'],
  },
  {
    root: 'crates/engine/src',
    folders: [
      'runtime',
      'files',
      'jobs',
      'execution',
      'query',
      'database',
      'ingest',
      'views',
      'apply',
      'external',
      'statement',
      'changes',
      'handoff',
      'open',
    ],
    isWhole: true,
    type: 'Database',
    receivers: ['database', 'Database'],
  },
];

/** @param {string} root the repository's folder */
export function rustFolderProblems(root) {
  return ORDERS.flatMap((order) => orderProblems(root, order));
}

function orderProblems(root, order) {
  const texts = textsOf(root, order.root.replace(/\/src\/.*/, '/src'));
  const edges = imports(texts);
  const inside = [...texts.keys()].filter((file) => file.startsWith(`${order.root}/`));
  const files = inside.map((file) => ({ file, level: levelOf(file, order) }));
  const placed = files.filter(({ level }) => level >= 0);
  const code = new Map(inside.map((file) => [file, codeOf(texts.get(file))]));
  const methods = new Map();
  for (const { file, level } of placed) {
    for (const method of methodsOf(code.get(file), order.type)) {
      methods.set(method, Math.min(level, methods.get(method) ?? level));
    }
  }
  const lost = files.filter(({ file, level }) => order.isWhole && level < 0 && !isEntry(file));
  return [
    ...lost.map(({ file }) => `${file} is in no folder of scripts/rust-folders.mjs`),
    ...placed.flatMap(({ file, level }) => [
      ...[...edges.get(file)]
        .filter((target) => levelOf(target, order) > level)
        .map((target) => `${file} may not name ${target}`),
      ...called(code.get(file), order.receivers)
        .filter((method) => methods.get(method) > level)
        .map((method) => `${file} may not call ${method} of ${order.folders[methods.get(method)]}`),
    ]),
  ];
}

function textsOf(root, folder) {
  const files = readdirSync(join(root, folder), { recursive: true });
  const rust = files.filter((file) => file.endsWith('.rs')).map((file) => `${folder}/${file}`);
  return new Map(rust.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

/** Returns the level of a file's folder; -1 if the folder is not listed. */
function levelOf(file, { root, folders }) {
  const [folder = ''] = file.startsWith(`${root}/`) ? file.slice(root.length + 1).split('/') : [];
  return folders.indexOf(folder.replace(/\.rs$/, ''));
}

function isEntry(file) {
  return file.endsWith('/src/lib.rs');
}

/** Returns the methods that a file adds to a type. */
function methodsOf(code, type) {
  const block = new RegExp(`^impl(?:<[^>]*>)? ${type}(?:<[^>]*>)? \\{\\n([^]*?)^\\}`, 'gm');
  return [...code.matchAll(block)].flatMap(([, body]) =>
    [...body.matchAll(/^ {4}(?:pub(?:\([^)]*\))? )?(?:async )?fn (\w+)/gm)].map(([, name]) => name),
  );
}

function called(code, receivers) {
  const call = new RegExp(
    `(?<!\\w)(?:${receivers.join('|')})\\s*(?:\\.|::)\\s*(\\w+)(?:::<[^>]*>)?\\(`,
    'g',
  );
  return [...code.matchAll(call)].map(([, method]) => method);
}
