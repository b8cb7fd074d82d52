import { readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import test from 'ava';
import { Linter, type Rule } from 'eslint';
import { fill, fillNodes } from '../src/fill.js';
import { texts } from '../src/texts.js';

/**
 * Tests the catalogue of texts: each text is used, and the build inserts each text where it is
 * used.
 */
const SOURCES = 'ts/console/src';
const BUILT = 'build/console/assets';

type Text = string | Readonly<Record<string, string>>;
type Catalogue = ReadonlyMap<string, Text>;
interface Inliner {
  readonly inlined: (code: string, id: string, catalogue: Catalogue) => string;
  readonly readCatalogue: (code: string) => Catalogue;
}

const areas: Readonly<Record<string, Readonly<Record<string, Text>>>> = texts;
const all = Object.entries(areas).flatMap(([area, named]) =>
  Object.entries(named).map(([name, text]) => [`${area}.${name}`, text] as const),
);

async function inliner(): Promise<Inliner> {
  return (await import(pathToFileURL('ts/console/inline-texts.mjs').href)) as Inliner;
}

test('every text in the catalogue is used', (t) => {
  const used = new Set<string>();
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
    if (/\.tsx?$/.test(file)) {
      const code = readFileSync(`${SOURCES}/${file}`, 'utf8');
      for (const [, path = ''] of code.matchAll(/\btexts\s*\.(\w+\s*\.\w+)/g)) {
        used.add(path.replace(/\s/g, ''));
      }
    }
  }
  t.deepEqual(
    all.map(([path]) => path).filter((path) => !used.has(path)),
    [],
  );
});

test('no area of the catalogue contains a text twice', (t) => {
  for (const [area, named] of Object.entries(areas)) {
    const shown = Object.values(named).map((text) => JSON.stringify(text));
    t.deepEqual(
      shown.filter((text, at) => shown.indexOf(text) !== at),
      [],
      area,
    );
  }
});

test('placeholders are replaced by their values', (t) => {
  t.is(fill('{rows} of {table}: {rows}', { rows: 3, table: 'trades' }), '3 of trades: 3');
  t.is(fill('{name} $& {name}', { name: '$1' }), '$1 $& $1');
  t.deepEqual(fillNodes('Open {link}.', { link: 7 }), ['Open ', 7, '.']);
});

test('the compiler checks the placeholders of a text', (t) => {
  // @ts-expect-error: a placeholder is missing
  t.is(fill('{rows} of {table}', { rows: 3 }), '3 of undefined');
  // @ts-expect-error: the text has no such placeholder
  t.is(fill('{rows}', { rows: 3, table: 'trades' }), '3');
  // @ts-expect-error: the text has no placeholder
  t.is(fill('rows', {}), 'rows');
});

test('the build replaces references with texts', async (t) => {
  const { inlined, readCatalogue } = await inliner();
  const catalogue = readCatalogue(`export const texts = Object.freeze({
    /** An area. */
    area: {
      title: 'It\\'s "here"',
      part: 'a ' + \`b\`,
      rows: { one: '{count} row', other: '{count} rows' },
      of: '{rows} of \`{table}\`',
    },
  } as const);`);
  const code = (body: string): string =>
    inlined(`import { texts } from './texts.js';\n${body}`, 'a.tsx', catalogue).trim();
  t.is(code('f(texts.area.title, texts.area.part)'), `f("It's \\"here\\"", "a b")`);
  t.is(code('f(texts.area.rows)'), 'f(({"one":"{count} row","other":"{count} rows"}))');
  t.is(code('fill(texts.area.of, { rows, table: g(x) })'), '`${rows} of \\`${g(x)}\\``');
  t.is(
    code('<p>{fillNodes(texts.area.of, { rows: 3, table: <b>{texts.area.part}</b> })}</p>'),
    '<p>{3}{" of `"}<b>{"a b"}</b>{"`"}</p>',
  );
  t.is(
    code('f(fillNodes(texts.area.of, { rows: 3, table: <b /> }))'),
    'f(<>{3}{" of `"}<b />{"`"}</>)',
  );
  t.throws(() => code('f(texts.area.missing)'), {
    message: /^a\.tsx:2: texts\.area\.missing: not/,
  });
  t.throws(() => code('f(texts.area)'), { message: /write texts\.<area>\.<name>/ });
  t.is(
    inlined('f(texts.area.title)', 'a.ts', catalogue),
    'f(texts.area.title)',
    'a constant other than the catalogue',
  );
});

test('the build and the compiler read the catalogue the same way', async (t) => {
  const { readCatalogue } = await inliner();
  const read = readCatalogue(readFileSync(`${SOURCES}/texts.ts`, 'utf8'));
  t.deepEqual([...read], [...all]);
});

test('the bundle contains no text with a placeholder', (t) => {
  const raw = all.flatMap(([, text]) =>
    typeof text === 'string' && text.replace(/\{\w+\}/g, '').length > 10 && text.includes('{')
      ? [text]
      : [],
  );
  t.true(raw.length > 100);
  for (const name of readdirSync(BUILT)) {
    const code = readFileSync(`${BUILT}/${name}`, 'utf8');
    t.deepEqual(
      raw.filter((text) => code.includes(text)),
      [],
      name,
    );
  }
});

test('ESLint refuses texts outside the catalogue', async (t) => {
  const { literalTexts } = (await import(pathToFileURL('ts/console/literal-texts.mjs').href)) as {
    readonly literalTexts: Rule.RuleModule;
  };
  const linter = new Linter();
  const refused = (code: string): number =>
    linter.verify(code, {
      languageOptions: { parserOptions: { ecmaFeatures: { jsx: true } } },
      plugins: { console: { rules: { texts: literalTexts } } },
      rules: { 'console/texts': 'error' },
    }).length;
  const texts = [
    'const a = "Cancel";',
    'const a = { label: "Drop it" };',
    'const a = `${name} was dropped`;',
    'f("the file is larger");',
    'throw new Error("no rows yet");',
    'const a = isDone ? "Done" : text;',
    'const a = <p>rows</p>;',
    'const a = <p>{isOne ? "row" : texts.rows}</p>;',
    'const a = <input placeholder="value" />;',
    'const a = <Menu name="Export" />;',
    'const a = <b title={`${name}: none`} />;',
  ];
  t.deepEqual(
    texts.filter((code) => refused(code) !== 1),
    [],
  );
  const others = [
    'import { a } from "./Some File.js";',
    'const a = kind === "Some kind";',
    'const a = "SELECT name FROM tables()";',
    'const a = `count(${column}) AS filled`;',
    'const a = "var(--text) 1px solid";',
    'const a = { keys: "Ctrl+Enter, Shift+F10", "drop table operation": 1 };',
    'const a = <p class="button small">{texts.share.title} <kbd>Ctrl Enter</kbd></p>;',
    'const a = <code>http.security.readonly</code>;',
    'const a = <b title="Alt+K">{count()}</b>;',
    'switch (kind) { case "Some kind": }',
    'addEventListener("message"); this.name = "Unreachable";',
  ];
  t.deepEqual(
    others.filter((code) => refused(code) !== 0),
    [],
  );
});
