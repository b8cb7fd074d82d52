import test from 'ava';

import { parse, scan, SyntaxError_, TokenKind } from '../../ts/sql/index.js';
import { splitStatements } from '../../ts/sql/lexer/split.js';
import { tokenize, unquote } from '../../ts/sql/lexer/lexer.js';

const NAMES = Object.entries(TokenKind);

/** Returns tokens as `Kind text`. */
function tokens(text: string): string[] {
  const { kinds, starts, ends } = scan(text);
  return kinds.map((kind, index) => {
    const name = NAMES.find(([, value]) => value === kind)?.[0] ?? '';
    return `${name} ${text.slice(starts[index], ends[index])}`.trim();
  });
}

test('words, names and strings are tokenized', (t) => {
  t.deepEqual(tokens(`select "a""b" 'it''s' \`c\` größe $x`), [
    'Word select',
    'Quoted "a""b"',
    "String 'it''s'",
    'Quoted `c`',
    'Word größe',
    'Bad $',
    'Word x',
    'End',
  ]);
});

test('numbers and their suffixes are tokenized', (t) => {
  t.deepEqual(tokens('1 1_000 17L 1.5 .5 1e3 2.5E-7 1.5f 12.50m 3d 0x1F 1h30m 10u'), [
    'Integer 1',
    'Integer 1_000',
    'Integer 17L',
    'Float 1.5',
    'Float .5',
    'Float 1e3',
    'Float 2.5E-7',
    'Float 1.5f',
    'Decimal 12.50m',
    'Duration 3d',
    'Long256 0x1F',
    'Duration 1h30m',
    'Duration 10u',
    'End',
  ]);
});

test('geohashes, parameters and variables are tokenized', (t) => {
  t.deepEqual(tokens('#u33d #u33d/18 ##0110 $1 ? :name @var a[1:b]'), [
    'Geohash #u33d',
    'Geohash #u33d/18',
    'Geohash ##0110',
    'Parameter $1',
    'Mark ?',
    'NamedParameter :name',
    'Variable @var',
    'Word a',
    'Mark [',
    'Integer 1',
    'Mark :',
    'Word b',
    'Mark ]',
    'End',
  ]);
});

test('the longest matching operator is tokenized', (t) => {
  t.deepEqual(tokens('a<<=b>>c!~d::e||f:=g<>h'), [
    'Word a',
    'Mark <<=',
    'Word b',
    'Mark >>',
    'Word c',
    'Mark !~',
    'Word d',
    'Mark ::',
    'Word e',
    'Mark ||',
    'Word f',
    'Mark :=',
    'Word g',
    'Mark <>',
    'Word h',
    'End',
  ]);
});

test('a dollar-quoted string has no escapes', (t) => {
  const written = `$$it's $1; --$$ $a$ $$ " $b$ $a$ $ä_1$x$ä_1$ $1 $1$$x$$ x$$y$$ $1$ $$$$`;
  t.deepEqual(tokens(written), [
    `String $$it's $1; --$$`,
    'String $a$ $$ " $b$ $a$',
    'String $ä_1$x$ä_1$',
    'Parameter $1',
    'Parameter $1',
    'String $$x$$',
    'Word x$$y$$',
    'Parameter $1',
    'Bad $',
    'String $$$$',
    'End',
  ]);
  t.deepEqual(['$$a$$', `$x$'a''$x$`, "'it''s'", '"a""b"'].map(unquote), [
    'a',
    "'a''",
    "it's",
    'a"b',
  ]);
  const insert = parse(`insert into t values ($$it's$$, $q$a$$b$q$)`);
  t.regex(JSON.stringify(insert.nodes), /"texts":\["it's","a\$\$b"\]/);
});

test('comments are dropped and hints are kept', (t) => {
  t.deepEqual(tokens('select /*+ h(a) */ 1 -- end\n/* x */+ 2 /*+ no hint */'), [
    'Word select',
    'Hint /*+ h(a) */',
    'Integer 1',
    'Mark +',
    'Integer 2',
    'End',
  ]);
});

test('token positions count UTF-16 code units', (t) => {
  const { starts } = scan("'😀' x");
  t.deepEqual(starts, [0, 5, 6]);
});

test('an error is reported at the start of the invalid token', (t) => {
  const cases: [string, number, string][] = [
    ["SELECT 'abc", 7, 'unclosed quoted string?'],
    ['select "abc', 7, 'unclosed quotation mark'],
    ['select $a$ $$ $b$', 7, 'unclosed dollar-quoted string, $a$ expected'],
    ['select $$', 7, 'unclosed dollar-quoted string, $$ expected'],
    ['select $a, $1$', 7, "unexpected character '$'"],
    ['SELECT 1..2', 9, 'too many dots'],
    ['SELECT 0xZZ', 7, 'invalid constant: 0xZZ'],
    ['SELECT #', 7, 'invalid constant: #'],
    ['SELECT 1 /* x', 9, 'unclosed comment'],
    ['SELECT \0', 7, "unexpected character '\\u0'"],
  ];
  for (const [text, start, message] of cases) {
    const error = t.throws(() => tokenize(text), { instanceOf: SyntaxError_ }, text);
    t.is(error.start, start, text);
    t.is(error.message, message, text);
  }
});

test('a script is split only at top-level semicolons', (t) => {
  t.deepEqual(splitStatements("select 1; ; -- x;\n select ';' ;insert into t values ('a;b')"), [
    { text: 'select 1', start: 0 },
    { text: "select ';'", start: 19 },
    { text: "insert into t values ('a;b')", start: 31 },
  ]);
  t.deepEqual(splitStatements(`select $$;'$$; select $x$;$$;$x$`), [
    { text: `select $$;'$$`, start: 0 },
    { text: 'select $x$;$$;$x$', start: 15 },
  ]);
});
