/**
 * Tests that an error is attributed to the correct word, and that the intended word is suggested.
 */
import test from 'ava';

import { expectedWord, wrongSpan } from '../src/sql/error-span.js';

function wrong(text: string, mark: string, message: string): string {
  const { start, end } = wrongSpan(text, text.indexOf(mark), message);
  return text.slice(start, end);
}

test('the error marker is on the last part of a qualified name', (t) => {
  const text = 'SELECT t.prcie FROM trades t';
  t.is(wrong(text, 't.', 'Invalid column: t.prcie'), 'prcie');
  t.is(wrong(text, 't.', 'ambiguous name'), 't');
  t.is(wrong('SELECT s.a.b', 's.', 'Invalid column: s.a.b'), 'b');
});

test('the error marker is on the misspelt keyword, not on the next word', (t) => {
  const select = "unexpected token [*]: did you mean 'select' for 'SELCT'?";
  t.is(wrong('SELCT * FROM trades', '*', select), 'SELCT');
  t.is(expectedWord('SELCT', select), 'SELECT');
  const from = "found [tok='trades', len=6] ',', 'from' or 'over' expected";
  t.is(wrong('SELECT price FORM trades', 'trades', from), 'FORM');
  t.is(expectedWord('form', from), 'from');
  t.is(wrong('SELECT price trades', 'trades', from), 'trades');
  t.is(expectedWord('price', from), undefined);
});

test('the error marker is on the value that cannot be converted', (t) => {
  const text = "INSERT INTO t VALUES ('y', 'x', ''); SELECT 'z'";
  const bad = (value: string): string =>
    wrong(text, 'INSERT', `inconvertible value: ${value} [CHAR -> TIMESTAMP]`);
  t.is(bad('x'), "'x'");
  t.is(bad('`y`'), "'y'");
  t.is(bad(''), "''");
  t.is(bad('z'), 'INSERT');
  t.is(wrong(text, "'y'", 'inconvertible value: `y` [STRING -> INT]'), "'y'");
  t.is(wrong("SELECT 'a', 'a'", 'SELECT', 'inconvertible value: a [CHAR -> INT]'), 'SELECT');
});

test('the error marker is on the converted column, not on an equal literal', (t) => {
  const text = "SELECT price + symbol FROM trades WHERE symbol = 'BTC'";
  t.is(wrong(text, 'symbol', 'inconvertible value: `BTC` [STRING -> DOUBLE]'), 'symbol');
});

test('the error marker for a missing permission is on the table', (t) => {
  const text = 'SELECT * FROM "Open" o JOIN clients c ON o.id = c.id; DROP TABLE x';
  const denied = (what: string): string => wrong(text, 'SELECT', `Access denied [${what}]`);
  t.is(denied('SELECT on clients(email)'), 'clients');
  t.is(denied('SELECT on open'), '"Open"');
  t.is(denied('DROP TABLE on x'), 'SELECT');
  t.is(denied('CREATE TABLE'), 'SELECT');
});
