import test from 'ava';
import { scan } from '../src/sql/scanner.js';
import { spanAt, statementAt, statementsOf } from '../src/sql/statements.js';

function split(text: string): string[] {
  return statementsOf(scan(text)).map(({ start, end }) => text.slice(start, end));
}

function at(text: string): string | undefined {
  const offset = text.indexOf('|');
  const plain = text.replace('|', '');
  const statement = statementAt(plain, offset);
  return statement && plain.slice(statement.start, statement.end);
}

function kinds(text: string): string[] {
  return scan(text).map(({ kind, start, end }) => `${kind} ${text.slice(start, end)}`);
}

test('semicolons in strings, names and comments do not split statements', (t) => {
  t.deepEqual(split('select \';\' from "a;b"; -- no; not here\nselect 2 /* ; */ + 1;;'), [
    'select \';\' from "a;b"',
    'select 2 /* ; */ + 1',
  ]);
  t.deepEqual(split("select 'it''s; fine'; select 1"), ["select 'it''s; fine'", 'select 1']);
  t.deepEqual(split('select $$a;$$; select $x$;$$;$x$'), ['select $$a;$$', 'select $x$;$$;$x$']);
  t.deepEqual(kinds('$1 $$half; a').slice(0, 2), ['variable $1', 'string $$half; a']);
});

test('comments around a statement do not belong to it', (t) => {
  t.deepEqual(split('-- first\nselect 1 -- tail\n; -- last'), ['select 1']);
  t.deepEqual(split('-- only\n/* comments */ ;;'), []);
});

test('DECLARE and WITH belong to the statement that follows', (t) => {
  const text = 'DECLARE @a := 1, @b := 2\nWITH x AS (SELECT 1)\nSELECT @a FROM x';
  t.deepEqual(split(`${text};`), [text]);
});

test('an unclosed string or comment extends to the end of the text', (t) => {
  t.deepEqual(split("select 'open; select 2"), ["select 'open; select 2"]);
  t.deepEqual(split('select 1 /* open; select 2'), ['select 1']);
});

test('the statement at the cursor is selected', (t) => {
  t.is(at('select 1; sel|ect 2; select 3'), 'select 2');
  t.is(at('|select 1;\nselect 2'), 'select 1');
  t.is(at('select 1;| \nselect 2'), 'select 1');
  t.is(at('select 1;\n|\nselect 2'), 'select 2');
  t.is(at('select 1;\nselect 2;\n\n|'), 'select 2');
  t.is(at('-- com|ment\nselect 1'), 'select 1');
  t.is(at('  |  '), undefined);
});

test('tokens are classified by kind', (t) => {
  t.deepEqual(kinds("SELECT first(price), 'a' FROM trades WHERE x = @v AND y > 1_000.5e3"), [
    'keyword SELECT',
    'function first',
    'operator (',
    'identifier price',
    'operator )',
    'operator ,',
    "string 'a'",
    'keyword FROM',
    'identifier trades',
    'keyword WHERE',
    'identifier x',
    'operator =',
    'variable @v',
    'keyword AND',
    'identifier y',
    'operator >',
    'number 1_000.5e3',
  ]);
  t.deepEqual(kinds('1h 0xFF #u33d/18 $1 größe'), [
    'number 1h',
    'number 0xFF',
    'number #u33d/18',
    'variable $1',
    'identifier größe',
  ]);
});

test('a word after AS or a dot is a name', (t) => {
  t.deepEqual(kinds('t.first AS last, AS (SELECT'), [
    'identifier t',
    'operator .',
    'identifier first',
    'keyword AS',
    'identifier last',
    'operator ,',
    'keyword AS',
    'operator (',
    'keyword SELECT',
  ]);
});

test('any text is split into ordered tokens', (t) => {
  const fragments = [
    "'",
    '"',
    '--',
    '/*',
    '*/',
    ';',
    'a',
    '1',
    '.',
    '\n',
    ' ',
    '😀',
    '#',
    '@',
    '$',
    'é',
  ];
  let state = 42;
  const next = (): number => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648);
  for (let round = 0; round < 500; round++) {
    const text = Array.from({ length: 20 }, () => fragments[next() % fragments.length]).join('');
    let before = 0;
    for (const { start, end } of scan(text)) {
      t.true(start >= before && end > start && end <= text.length, JSON.stringify(text));
      before = end;
    }
  }
});

test('an error position marks the token at that position', (t) => {
  const text = 'select temprature from t';
  t.deepEqual(spanAt(text, 7), { start: 7, end: 17 });
  t.deepEqual(spanAt(text, 24), { start: 23, end: 24 });
  t.deepEqual(spanAt(text, 999), { start: 23, end: 24 });
  t.deepEqual(spanAt('', 0), { start: 0, end: 0 });
  // Positions are counted in UTF-16 code units, as in JavaScript.
  const wide = "select '😀', bad";
  t.deepEqual(spanAt(wide, wide.indexOf('bad')), { start: 13, end: 16 });
});
