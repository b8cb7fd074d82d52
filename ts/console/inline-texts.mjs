// Replaces references to the catalogue of texts with the texts themselves. Each chunk of the bundle
// then contains only the texts that it uses, and the bundle does not contain the catalogue:
//
//     texts.share.title                              "Share"
//     fill(texts.share.stop, { name })               `Stop sharing with ${name}`
//     {fillNodes(texts.versions.of, { name: <b/> })}   {"Versions of "}<b/>
import { readFileSync } from 'node:fs';

import ts from 'typescript';

const CATALOGUE = /(?:^|\/)texts\.js$/;

/**
 * Returns the Vite plugin, which runs before JSX is compiled.
 *
 * @param {string} file path of the catalogue
 */
export function inlineTexts(file) {
  let text;
  let catalogue;
  return {
    name: 'tidemark-texts',
    enforce: 'pre',
    transform(code, id) {
      if (!/\.tsx?$/.test(id) || id === file || !code.includes('texts.')) {
        return null;
      }
      this.addWatchFile(file);
      const now = readFileSync(file, 'utf8');
      if (now !== text) {
        catalogue = readCatalogue(now);
        text = now;
      }
      return { code: inlined(code, id, catalogue), map: null };
    },
  };
}

/**
 * Reads all texts of the catalogue.
 *
 * @param {string} code source text of the catalogue
 * @returns {Map<string, string | Record<string, string>>} value by `area.name`
 */
export function readCatalogue(code) {
  const source = ts.createSourceFile('texts.ts', code, ts.ScriptTarget.Latest, true);
  const values = new Map();
  for (const [area, names] of membersOf(declared(source))) {
    for (const [name, value] of membersOf(names)) {
      values.set(`${area}.${name}`, valueOf(value));
    }
  }
  return values;
}

/** Returns the object literal that initializes the constant `texts`. */
function declared(source) {
  const declarations = source.statements
    .filter(ts.isVariableStatement)
    .flatMap((statement) => [...statement.declarationList.declarations]);
  let value = declarations.find(({ name }) => name.getText() === 'texts').initializer;
  while (!ts.isObjectLiteralExpression(value)) {
    value = ts.isCallExpression(value) ? value.arguments[0] : value.expression;
  }
  return value;
}

function membersOf(object) {
  return object.properties.map(({ name, initializer }) => [name.text, initializer]);
}

function valueOf(node) {
  if (ts.isStringLiteralLike(node)) {
    return node.text;
  }
  if (ts.isBinaryExpression(node)) {
    return valueOf(node.left) + valueOf(node.right);
  }
  return Object.fromEntries(membersOf(node).map(([name, form]) => [name, valueOf(form)]));
}

/**
 * Returns a module in which all references to texts are replaced.
 *
 * @param {string} code source text of a module
 * @param {string} id its path, for messages
 * @param {ReturnType<typeof readCatalogue>} catalogue
 */
export function inlined(code, id, catalogue) {
  const kind = id.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const source = ts.createSourceFile(id, code, ts.ScriptTarget.Latest, true, kind);
  const entry = source.statements.find(
    (node) => ts.isImportDeclaration(node) && CATALOGUE.test(node.moduleSpecifier.text),
  );
  return entry ? new Inliner(source, entry, catalogue).rewritten(source) : code;
}

class Inliner {
  #source;
  #import;
  #catalogue;

  constructor(source, entry, catalogue) {
    this.#source = source;
    this.#import = entry;
    this.#catalogue = catalogue;
  }

  /** Returns the source text of a node with all replacements applied. */
  rewritten(node) {
    const start = ts.isSourceFile(node) ? 0 : node.getStart();
    const { text } = this.#source;
    let result = '';
    let end = start;
    for (const [inner, replacement] of this.#replacements(node)) {
      result += text.slice(end, inner.getStart()) + replacement;
      end = inner.end;
    }
    return result + text.slice(end, node.end);
  }

  /** Returns the outermost nodes to replace inside a node, in source order. */
  #replacements(node) {
    const replacement = this.#replacement(node);
    if (replacement !== undefined) {
      return [[node, this.#padded(node, replacement)]];
    }
    const found = [];
    ts.forEachChild(node, (inner) => {
      found.push(...this.#replacements(inner));
    });
    return found;
  }

  #replacement(node) {
    if (node === this.#import) {
      return '';
    }
    if (ts.isJsxExpression(node) && ts.isJsxElement(node.parent) && node.expression) {
      const filled = this.#filled(node.expression);
      return filled && this.#jsx(filled);
    }
    const filled = this.#filled(node);
    if (filled) {
      return filled.isNodes ? `<>${this.#jsx(filled)}</>` : this.#template(filled);
    }
    const value = this.#valueAt(node);
    if (value !== undefined) {
      return typeof value === 'string' ? JSON.stringify(value) : `(${JSON.stringify(value)})`;
    }
    if (ts.isIdentifier(node) && node.text === 'texts' && isReference(node)) {
      throw this.#error(node, 'write texts.<area>.<name>');
    }
    return undefined;
  }

  /** Returns the text at `texts.<area>.<name>`; `undefined` for any other node. */
  #valueAt(node) {
    if (!ts.isPropertyAccessExpression(node) || !ts.isPropertyAccessExpression(node.expression)) {
      return undefined;
    }
    const { expression: area } = node;
    if (!ts.isIdentifier(area.expression) || area.expression.text !== 'texts') {
      return undefined;
    }
    const value = this.#catalogue.get(`${area.name.text}.${node.name.text}`);
    if (value === undefined) {
      throw this.#error(node, 'not in the catalogue of texts');
    }
    return value;
  }

  /** Splits a `fill` or `fillNodes` call into strings and the expressions of its placeholders. */
  #filled(node) {
    if (!ts.isCallExpression(node) || !/^fill(?:Nodes)?$/.test(node.expression.getText())) {
      return undefined;
    }
    const [text, values] = node.arguments;
    const value = this.#valueAt(text);
    if (typeof value !== 'string' || !ts.isObjectLiteralExpression(values)) {
      throw this.#error(node, 'write a text of the catalogue and an object of values');
    }
    const named = new Map(
      values.properties.map((one) => [one.name.text, one.initializer ?? one.name]),
    );
    const chunks = value
      .split(/\{(\w+)\}/)
      .map((chunk, index) => (index % 2 === 0 ? chunk : named.get(chunk)))
      .filter((chunk) => chunk !== '');
    return { chunks, isNodes: node.expression.getText() === 'fillNodes' };
  }

  #jsx({ chunks }) {
    return chunks
      .map((chunk) => {
        if (typeof chunk === 'string') {
          return `{${JSON.stringify(chunk)}}`;
        }
        const node = ts.isParenthesizedExpression(chunk) ? chunk.expression : chunk;
        const code = this.rewritten(node);
        return ts.isJsxElement(node) || ts.isJsxSelfClosingElement(node) ? code : `{${code}}`;
      })
      .join('');
  }

  #template({ chunks }) {
    const inner = chunks.map((chunk) =>
      typeof chunk === 'string'
        ? chunk.replace(/[\\`]|\$(?=\{)/g, '\\$&')
        : `\${${this.rewritten(chunk)}}`,
    );
    return `\`${inner.join('')}\``;
  }

  /** Preserves the number of lines, so that positions in error messages remain correct. */
  #padded(node, replacement) {
    const lines = (text) => text.split('\n').length;
    const missing = '\n'.repeat(Math.max(0, lines(node.getText()) - lines(replacement)));
    // A line break between elements would be rendered as text.
    return ts.isJsxExpression(node)
      ? replacement.replace(/\}$/, `${missing}}`)
      : replacement + missing;
  }

  #error(node, message) {
    const { line } = this.#source.getLineAndCharacterOfPosition(node.getStart());
    return new Error(`${this.#source.fileName}:${line + 1}: ${node.getText()}: ${message}`);
  }
}

/** True if an identifier is a reference rather than the name of a property or binding. */
function isReference(node) {
  return node.parent.name !== node || ts.isShorthandPropertyAssignment(node.parent);
}
