// Finds clauses that the binder does not read. For each syntax tree type (crates/ast) that the
// binder names, every field must occur in a pattern of that type in crates/planner, where the field
// is bound or refused. Types without tree nodes (names, spans, literal rows) are plain values.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Comments, strings and characters, which may contain braces. */
const NO_CODE = /"(?:\\[^]|[^"\\])*"|'(?:\\.|[^'\\\n])'|\/\/.*/g;
/** Matches the text between a pattern and the expression or body that follows it. */
const AFTER_PATTERN = /^(?:[\s,)}]|\.\.)*(?:=>|=[^=]|\||in\b|if\b)/;
/**
 * The file that refuses whole statements because other code runs them. The binder need not read
 * their clauses.
 */
const REFUSALS = /binder.unsupported\.rs$/;

function code(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /(?<!tests)\.rs$/.test(file))
    .map((file) => {
      const text = readFileSync(join(folder, file), 'utf8').replaceAll(NO_CODE, '""');
      return { file, text };
    });
}

/** Returns the text between the opening bracket just before `start` and its closing bracket. */
function block(text, start) {
  let [depth, at] = [1, start];
  for (; depth > 0 && at < text.length; at += 1) {
    depth += { '{': 1, '}': -1 }[text[at]] ?? 0;
  }
  return { inside: text.slice(start, at - 1), after: text.slice(at) };
}

/** Returns the syntax tree types by name, with their fields. Variants are named `Enum::Variant`. */
function typesOf(texts) {
  const types = new Map();
  for (const { text } of texts) {
    for (const found of text.matchAll(/pub (struct|enum) (\w+)[^{;]*\{/g)) {
      const { inside } = block(text, found.index + found[0].length);
      if (found[1] === 'struct') {
        types.set(found[2], inside);
      } else {
        for (const variant of inside.matchAll(/^\s*(\w+) \{([^}]*)\}/gm)) {
          types.set(`${found[2]}::${variant[1]}`, variant[2]);
        }
      }
    }
  }
  const nodeTypes = new Set(['NodeId', ...[...types.keys()].map((name) => name.split('::')[0])]);
  ['Name', 'Span', 'Node', 'Tree'].forEach((value) => nodeTypes.delete(value));
  // The type `Tree` contains the nodes but is not itself a node.
  const containsNodes = (name, fields) =>
    name.includes('::') ||
    (!/\bNode\b/.test(fields) &&
      [...fields.matchAll(/\w+/g)].some(([word]) => nodeTypes.has(word)));
  const fieldsOf = (text) => [...text.matchAll(/^\s*(?:pub )?(\w+):/gm)].map(([, field]) => field);
  return new Map(
    [...types]
      .filter(([name, fields]) => containsNodes(name, fields))
      .map(([name, fields]) => [name, fieldsOf(fields.replaceAll(/, (?=\w+:)/g, '\n'))]),
  );
}

/**
 * @param {string} root
 * @returns {string[]} fields that do not occur in any pattern of the binder, as `Type.field`
 */
export function unreadFields(root) {
  const types = typesOf(code(join(root, 'crates/ast/src')));
  const read = new Map();
  const named = new Set();
  for (const { file, text } of code(join(root, 'crates/planner/src'))) {
    const imports = /\btidemark_ast::(\{[^}]*\}|\w+(?: as \w+)?)/g;
    const imported = [...text.matchAll(imports)].map(([, names]) => names);
    const aliases = new Map();
    for (const [, name, alias] of imported.join(' ').matchAll(/(\w+)(?: as (\w+))?/g)) {
      if (!REFUSALS.test(file)) {
        named.add(name);
      }
      aliases.set(alias ?? name, name);
    }
    for (const found of text.matchAll(/\b(\w+)(::\w+)? \{/g)) {
      const name = (aliases.get(found[1]) ?? found[1]) + (found[2] ?? '');
      const { inside, after } = block(text, found.index + found[0].length);
      if (types.has(name) && AFTER_PATTERN.test(after)) {
        read.set(name, `${read.get(name) ?? ''} ${inside}`);
      }
    }
  }
  return [...types]
    .filter(([name]) => named.has(name.split('::')[0]))
    .flatMap(([name, fields]) => {
      const words = new Set((read.get(name) ?? '').match(/\w+/g));
      return fields.filter((field) => !words.has(field)).map((field) => `${name}.${field}`);
    });
}
