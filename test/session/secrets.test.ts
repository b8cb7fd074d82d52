/**
 * Passwords and tokens are hidden whatever the syntax; the statements are generated from
 * combinations.
 */
import test from 'ava';

import { withoutSecrets } from '../../ts/session/index.js';
import { parse } from '../../ts/sql/index.js';

const CANARY = 'CANARYpw4';
const TOKEN = 'tdm_CANARYCANARYCANARY0123456789';

/** Ways to quote a password. */
const QUOTINGS = [
  `'${CANARY}'`,
  `"${CANARY}"`,
  `\`${CANARY}\``,
  CANARY,
  `'it''s ${CANARY}'`,
  `"a""b ${CANARY}"`,
  `'${CANARY} "double"'`,
  `'--${CANARY}'`,
  `'/* ${CANARY} */'`,
  `'password ${CANARY}'`,
  `'\n${CANARY}'`,
  `"${CANARY}.dotted"`,
];
/** Syntax that the parser rejects, but in which passwords must still be hidden. */
const UNREAD = [
  `E'${CANARY}'`,
  `e'\\x43${CANARY}'`,
  `U&'${CANARY}'`,
  `u&"${CANARY}"`,
  `N'${CANARY}'`,
  `$$${CANARY}$$`,
  `$tag$${CANARY}$tag$`,
  `'${CANARY}`,
  `"${CANARY}`,
  `'a' || '${CANARY}'`,
  `('${CANARY}')`,
  `= '${CANARY}' '${CANARY}'`,
  `'a'\n'${CANARY}'`,
  `${CANARY} ${CANARY}`,
];
const GAPS = [' ', '\n', '\t ', ' /* password */ ', ' -- password\n', '/**/', ' /* a /* b */ '];
const FORMS: ((password: string, gap: string) => string)[] = [
  (password, gap) => `create user s4 with${gap}password${gap}${password}`,
  (password, gap) => `CREATE${gap}USER IF NOT EXISTS s4${gap}WITH PASSWORD${gap}${password}`,
  (password, gap) => `alter user s4 with${gap}PassWord${gap}${password}`,
  (password, gap) => `create service account s4 with password${gap}${password}`,
  (password, gap) => `${gap}ALTER${gap}SERVICE ACCOUNT s4 WITH${gap}PASSWORD${gap}${password};`,
];
/** All combinations of forms, gaps and quotings. */
const GENERATED = FORMS.flatMap((form) =>
  GAPS.flatMap((gap) => [...QUOTINGS, ...UNREAD].map((password) => form(password, gap))),
);

test(`passwords are hidden in ${GENERATED.length} generated statements`, (t) => {
  for (const text of GENERATED) {
    t.false(withoutSecrets(text).includes(CANARY), text);
  }
});

test('only the password is hidden', (t) => {
  for (const quoting of QUOTINGS) {
    const text = `create user s4 with password ${quoting}`;
    t.is(withoutSecrets(text), "create user s4 with password '****'", quoting);
    const { nodes } = parse(text);
    t.true(JSON.stringify(nodes).includes(CANARY), quoting);
  }
  const tables = "select password, x from t where password = 'x' and token = 'y'";
  t.is(withoutSecrets(tables), "select password, x from t where password = '****' and token = 'y'");
  const statement = 'create table t (password varchar, token varchar)';
  t.is(withoutSecrets(statement), statement);
});

test('tokens are hidden in every position', (t) => {
  for (const text of [
    `alter user u drop token type rest '${TOKEN}'`,
    `alter user u drop token type rest "${TOKEN}"`,
    `alter user u drop token type rest ${TOKEN}`,
    `alter user u drop token type rest /* x */ '${TOKEN}'`,
    `select '${TOKEN}'`,
    `-- ${TOKEN}\nselect 1`,
    `select 1 as "${TOKEN}"`,
    `insert into t values ('a ${TOKEN} b')`,
  ]) {
    t.false(withoutSecrets(text).includes('CANARY'), text);
  }
});
