/** Which word an error is about, and which one was meant. */
import test from 'ava';

import { expectedWord, wrongSpan } from '../src/sql/meant.js';

function wrong(text: string, mark: string, message: string): string {
  const { start, end } = wrongSpan(text, text.indexOf(mark), message);
  return text.slice(start, end);
}

test('the last part of a qualified name is wrong', (t) => {
  const text = 'SELECT t.prcie FROM trades t';
  t.is(wrong(text, 't.', 'Invalid column: t.prcie'), 'prcie');
  t.is(wrong(text, 't.', 'ambiguous name'), 't');
  t.is(wrong('SELECT s.a.b', 's.', 'Invalid column: s.a.b'), 'b');
});

test('a misspelt keyword is wrong, not the word behind it', (t) => {
  const select = "unexpected token [*]: did you mean 'select' for 'SELCT'?";
  t.is(wrong('SELCT * FROM trades', '*', select), 'SELCT');
  t.is(expectedWord('SELCT', select), 'SELECT');
  const from = "found [tok='trades', len=6] ',', 'from' or 'over' expected";
  t.is(wrong('SELECT price FORM trades', 'trades', from), 'FORM');
  t.is(expectedWord('form', from), 'from');
  t.is(wrong('SELECT price trades', 'trades', from), 'trades');
  t.is(expectedWord('price', from), undefined);
});
