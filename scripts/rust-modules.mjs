// Finds the modules of the Rust crates, the references between modules of a crate, and their
// cycles. It reads `use` items and paths in the source: `crate::`, `super::`, `self::`, paths that
// start with a child module (`span::Span` next to `mod span;`), and re-exports.
import { posix } from 'node:path';

/**
 * @param {Map<string, string>} texts file → text, for all crates
 * @returns the files in each import cycle, largest cycle first. A parent that only declares and
 *   re-exports its children is not part of a cycle.
 */
export function circles(texts) {
  return components(imports(texts))
    .filter((members) => members.length > 1)
    .sort((one, other) => other.length - one.length);
}

/**
 * @param {Map<string, string>} texts file → text, for whole crates
 * @returns {Map<string, Set<string>>} file → files that it references
 */
export function imports(texts) {
  const files = [...texts.keys()].filter((file) => /^crates\/\w+\/src\/.*\.rs$/.test(file));
  const code = new Map(files.map((file) => [file, codeOf(texts.get(file))]));
  return new Map(files.map((file) => [file, edgesOf(file, code)]));
}

/** Removes comments, strings and the tests at the end. */
export function codeOf(text) {
  return text
    .replace(/\n#\[cfg\(test\)\]\nmod tests? \{[^]*$/, '\n')
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\/\/.*$/gm, '');
}

function edgesOf(file, code) {
  const found = new Set();
  for (const path of pathsOf(code.get(file))) {
    const target = resolve(file, path, code);
    if (target !== undefined && target !== file) {
      found.add(target);
    }
  }
  return found;
}

/** Returns all crate paths in a source, with groups expanded. */
function pathsOf(text) {
  const children = [...text.matchAll(/\bmod (\w+);/g)].map(([, name]) => name);
  const paths = [];
  const start = new RegExp(
    `(?<![:.\\w])(?:${['crate', 'super', 'self', ...children].join('|')})::`,
    'g',
  );
  for (const match of text.matchAll(start)) {
    const line = text.slice(text.lastIndexOf('\n', match.index) + 1, match.index);
    // `pub use self::…` in a parent is a re-export, not a use.
    if (children.length === 0 || !/^\s*pub(\([\w: ]+\))? use $/.test(line)) {
      const isChild = children.includes(match[0].slice(0, -'::'.length));
      const found = expand(text, match.index);
      paths.push(...found.map((path) => (isChild ? ['self', ...path] : path)));
    }
  }
  return paths;
}

/** Returns the paths that begin at `index`: `a::{b, c::{d}}` expands to `a::b` and `a::c::d`. */
function expand(text, index) {
  const [head] = /^(?:\w+::)*\w*/.exec(text.slice(index));
  const parts = head.split('::').filter((part) => part !== '');
  if (text[index + head.length] !== '{') {
    return [parts];
  }
  const found = [];
  let at = index + head.length + 1;
  while (at < text.length && text[at] !== '}') {
    if (/\w/.test(text[at])) {
      found.push(...expand(text, at).map((rest) => [...parts, ...rest]));
      at = endOf(text, at);
    } else {
      at += 1;
    }
  }
  return found;
}

function endOf(text, start) {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '{') {
      depth += 1;
    } else if (depth === 0 && (text[at] === ',' || text[at] === '}')) {
      return at;
    } else if (text[at] === '}') {
      depth -= 1;
    }
  }
  return text.length;
}

/** Returns the file that a path refers to, following modules and re-exports. */
function resolve(file, path, code) {
  const source = /^crates\/\w+\/src/.exec(file)[0];
  const inside = moduleOf(file, source);
  const parts = [...path];
  let at = parts[0] === 'crate' ? [] : inside;
  while (parts[0] === 'crate' || parts[0] === 'self' || parts[0] === 'super') {
    at = parts.shift() === 'super' ? at.slice(0, -1) : at;
  }
  return descend(source, at, parts, code, 0);
}

function descend(source, module, parts, code, depth) {
  const file = fileOf(source, module, code);
  if (file === undefined || parts.length === 0 || depth > 8) {
    return undefined;
  }
  const [name, ...rest] = parts;
  if (fileOf(source, [...module, name], code) !== undefined) {
    return rest.length === 0
      ? fileOf(source, [...module, name], code)
      : (descend(source, [...module, name], rest, code, depth + 1) ??
          fileOf(source, [...module, name], code));
  }
  const handed = handedOn(code.get(file)).get(name);
  if (handed !== undefined) {
    const at = handed[0] === 'crate' ? [] : module;
    const path = handed.filter((part) => part !== 'crate' && part !== 'self');
    return descend(source, at, path, code, depth + 1) ?? file;
  }
  return file;
}

const handedOnCache = new Map();

/** Maps names to paths for a module's `pub use` items. */
function handedOn(text) {
  const known = handedOnCache.get(text);
  if (known !== undefined) {
    return known;
  }
  const found = new Map();
  for (const match of text.matchAll(/\bpub(?:\([\w: ]+\))? use (?=[\w:]+)/g)) {
    for (const path of expand(text, match.index + match[0].length)) {
      found.set(path.at(-1), path);
    }
  }
  handedOnCache.set(text, found);
  return found;
}

function moduleOf(file, source) {
  const parts = file.slice(source.length + 1, -'.rs'.length).split('/');
  return ['mod', 'lib', 'main'].includes(parts.at(-1)) ? parts.slice(0, -1) : parts;
}

function fileOf(source, module, code) {
  const path = posix.join(source, ...module);
  return (module.length === 0 ? [`${path}/lib.rs`] : [`${path}.rs`, `${path}/mod.rs`]).find(
    (file) => code.has(file),
  );
}

/** Finds strongly connected components with Tarjan's algorithm. */
function components(edges) {
  const state = { index: 0, stack: [], found: [], numbers: new Map(), low: new Map() };
  for (const node of edges.keys()) {
    if (!state.numbers.has(node)) {
      visit(node, edges, state);
    }
  }
  return state.found;
}

function visit(node, edges, state) {
  const { numbers, low, stack } = state;
  numbers.set(node, state.index);
  low.set(node, state.index);
  state.index += 1;
  stack.push(node);
  for (const next of edges.get(node)) {
    if (!numbers.has(next)) {
      visit(next, edges, state);
      low.set(node, Math.min(low.get(node), low.get(next)));
    } else if (stack.includes(next)) {
      low.set(node, Math.min(low.get(node), numbers.get(next)));
    }
  }
  if (low.get(node) === numbers.get(node)) {
    state.found.push(stack.splice(stack.indexOf(node)));
  }
}
