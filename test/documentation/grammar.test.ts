/**
 * The grammar blocks of the SQL reference, compared with the parser in both directions. The parser
 * must accept random sentences of every statement, and the sentences must contain every kind of
 * syntax tree node, every kind of session statement and every parser keyword. Prints its seed;
 * SEED=n repeats a run.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';

import { allPermissions } from '../../ts/access/catalogue.js';
import { readStatement } from '../../ts/sql/index.js';
import { COLUMN_WORDS, RESERVED } from '../../ts/sql/lexer/keywords.js';
import { startTestServer } from '../golden/server.js';
import { send } from '../golden/http-client.js';
import { suiteSeed } from '../seed.js';
import { Random } from '../torture/harness.js';
import { Derivations } from './derive.js';
import { keywordsOf, readGrammar, referencesOf, rulesOf, type Form } from './ebnf.js';
import { TERMINALS } from './terminals.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Number of sentences for each statement. */
const SENTENCES = 300;
/** Number of sentences for each alternative of each rule. */
const SENTENCES_WITH_CHOICE = 10;
/** The rules that no other rule refers to. */
const STARTS = ['statement', 'interval_string'];
/** Rules that only list statements. */
const LISTS = /^(?:statement|\w+_statement)$/;

const seed = suiteSeed();
const random = new Random(seed);
const grammar = readGrammar(join(ROOT, 'docs'));
const derivations = new Derivations(grammar, TERMINALS, random);

function bodyOf(name: string): Form {
  const rule = grammar.get(name);
  if (rule === undefined) {
    throw new Error(`no rule ${name}`);
  }
  return rule.body;
}

/** The rules of single statements. */
function statementRules(name: string): readonly string[] {
  return LISTS.test(name) && name !== 'explained_statement'
    ? referencesOf(bodyOf(name)).flatMap(statementRules)
    : [name];
}

const statements = statementRules('statement');

/** Values of a tree's string properties, each with its property: `kind: 'Select'`. */
const found = new Set<string>();

function collect(value: unknown, key = ''): void {
  if (typeof value === 'string') {
    found.add(`${key}: '${value}'`).add(`'${value}'`);
  } else if (Array.isArray(value)) {
    value.forEach((item: unknown) => {
      collect(item, key);
    });
  } else if (typeof value === 'object' && value !== null) {
    Object.entries(value).forEach(([name, member]) => {
      collect(member, name);
    });
  }
}

test('every grammar rule is defined, used and complete', (t) => {
  const used = new Set([...grammar.values()].flatMap(({ body }) => referencesOf(body)));
  const unknown = [...used].filter((name) => !grammar.has(name));
  const unused = [...grammar.keys()].filter((name) => !used.has(name) && !STARTS.includes(name));
  t.deepEqual(unknown, [], 'rules that are used but not defined');
  t.deepEqual(unused, [], 'rules that are defined but not used');
  t.deepEqual(derivations.endless, [], 'rules without a finite sentence');
  const described = [...grammar.values()].filter(({ body }) => body.form === 'described');
  t.deepEqual(described.map(({ name }) => name).sort(), Object.keys(TERMINALS).sort());
});

/** Parses a sentence and collects the values of its trees; returns the error, if any. */
function refusal(tokens: readonly string[]): string | null {
  const sql = tokens.join(' ');
  try {
    const { tree, session } = readStatement(sql);
    collect(tree);
    collect(session);
    return null;
  } catch (error) {
    return `${String(error)}, SEED=${seed}:\n${sql}`;
  }
}

for (const name of statements) {
  test.serial(`the parser accepts sentences of ${name}`, (t) => {
    for (let count = 0; count < SENTENCES; count += 1) {
      t.is(refusal(derivations.sentence(name)), null);
    }
  });
}

test.serial('the parser accepts sentences with every alternative of every rule', (t) => {
  const choices = derivations.choices('statement');
  t.true(choices.length > 1_000, `${choices.length} alternatives`);
  for (const choice of choices) {
    for (let count = 0; count < SENTENCES_WITH_CHOICE; count += 1) {
      t.is(refusal(derivations.sentenceWith('statement', choice)), null, choice.text);
    }
  }
});

/** Syntax tree members that the sentences need not contain, with the reason for each. */
const NOT_IN_SENTENCES = new Map([
  ["kind: 'Empty'", 'an empty text is no statement'],
  ["kind: 'NamedParameter'", 'no interface accepts values for `:name`'],
]);

test.serial('grammar sentences cover every node kind and every session statement', (t) => {
  const sources = [
    'ast.generated.ts',
    'statements/session-statement.ts',
    'statements/copy-stream.ts',
  ];
  const kinds = sources.flatMap((file) => {
    const text = readFileSync(join(ROOT, 'ts/sql', file), 'utf8');
    const types = text.replaceAll(/^\s*(?:\/?\*|\/\/).*$/gm, '');
    const tags = [...types.matchAll(/\{ (?:readonly )?(\w+): ((?:'\w+'(?: \| )?)+)[;, ]/g)];
    const tagged = [...types.matchAll(/^\s+(?:readonly )?(kind|\w+): ('[A-Z]\w+');$/gm)];
    return [...tags, ...tagged].flatMap(([, key = '', values = '']) =>
      values.split(' | ').map((value) => `${key}: ${value}`),
    );
  });
  t.true(kinds.length > 150, `${kinds.length} kinds`);
  const missing = kinds.filter((kind) => !found.has(kind) && !NOT_IN_SENTENCES.has(kind));
  t.deepEqual([...new Set(missing)], [], 'no grammar block in docs/sql derives these');
});

test.serial('grammar sentences cover every enumerated value in the syntax tree', (t) => {
  const text = readFileSync(join(ROOT, 'ts/sql/ast.generated.ts'), 'utf8');
  const lists = [...text.matchAll(/^export type \w+ =\s+(?:\| )?'\w+'(?:\s+\| '\w+')+;/gm)];
  const values = lists.flatMap(([list]) => list.match(/'\w+'/g) ?? []);
  t.true(values.length > 60, `${values.length} values`);
  t.deepEqual(
    values.filter((value) => !found.has(value)),
    [],
    'no grammar block in docs/sql derives these',
  );
});

/** Parser words that are not keywords of a grammar block, with the reason for each. */
const NOT_KEYWORDS = new Map([
  ['LTRIM', 'has the syntax of TRIM'],
  ['RTRIM', 'has the syntax of TRIM'],
]);

test('every parser keyword is in a grammar block', (t) => {
  const known = new Set([...grammar.values()].flatMap(({ body }) => keywordsOf(body)));
  const folders = ['statements', 'queries', 'expressions', 'lexer'].map((name) => `ts/sql/${name}`);
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder)).map((file) => join(ROOT, folder, file)),
  );
  const words = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/'([A-Z][A-Z0-9_]+(?: [A-Z]+)*)'/g)].flatMap(
      ([, text = '']) => text.split(' '),
    ),
  );
  const missing = words.filter((word) => !known.has(word) && !NOT_KEYWORDS.has(word));
  t.deepEqual([...new Set(missing)].sort(), [], 'no grammar block in docs/sql has these');
  const needless = [...NOT_KEYWORDS.keys()].filter((word) => known.has(word));
  t.deepEqual(needless, [], 'exceptions that occur in a grammar block');
});

test('the reference lists the reserved words and the permissions', (t) => {
  const page = readFileSync(join(ROOT, 'docs/sql/lexical.md'), 'utf8');
  const lists = [...page.matchAll(/^(?:`[A-Z]+`(?:, | and |,\n| and\n)?)+/gm)].join(' ');
  const listed = [...lists.matchAll(/`([A-Z]+)`/g)].map(([, word = '']) => word);
  t.deepEqual([...new Set(listed)].filter((word) => RESERVED.has(word)).sort(), [...RESERVED]);
  t.true([...COLUMN_WORDS].every((word) => page.includes(`\`${word}\``)));
  const names = alternatives(bodyOf('permission_name')).sort();
  const permissions = allPermissions().map(([name]) => name);
  t.deepEqual([...names, 'ASSUME SERVICE ACCOUNT'].sort(), [...permissions].sort());
});

function alternatives(form: Form): string[] {
  return form.form === 'choice' ? form.members.map((one) => keywordsOf(one).join(' ')) : [];
}

test('the server accepts random interval strings from the grammar', async (t) => {
  t.timeout(120_000);
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  t.teardown(() => server.stop());
  const answer = async (sql: string): Promise<string> => {
    const target = `/exec?query=${encodeURIComponent(sql)}`;
    const reply = await send(server.url, { method: 'GET', target, headers: {}, body: null });
    return reply.status === 200 ? '' : reply.body.toString('utf8');
  };
  t.is(await answer('CREATE TABLE t (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY'), '');
  for (let count = 0; count < SENTENCES; count += 1) {
    const text = derivations.sentence('interval_string').join('');
    t.is(await answer(`SELECT count() FROM t WHERE ts IN '${text}'`), '', `SEED=${seed}`);
  }
});

test('a grammar block is parsed', (t) => {
  const block = '```ebnf\na = B "(" [ c { "," c } ] ")" | ? x ? ;\nc = D ;\n```\n';
  const [a, c] = rulesOf('x.md', block);
  t.is(a?.body.form, 'choice');
  t.deepEqual(referencesOf(a?.body ?? { form: 'described' }), ['c', 'c']);
  t.deepEqual(keywordsOf(c?.body ?? { form: 'described' }), ['D']);
  t.throws(() => rulesOf('x.md', '```ebnf\na = B\nc = D ;\n```\n'), { message: /; expected/ });
  t.throws(() => rulesOf('x.md', '```ebnf\na = %;\n```\n'), { message: /cannot read/ });
});
