/** Extracts common table expressions as separate queries. */
import { scan, TokenKind } from '../../../sql/lexer/lexer.js';
import { quoted } from './names.js';

/**
 * Returns a query for all columns of a common table expression: the statement's WITH clause
 * followed by `SELECT *`. Returns `undefined` if the statement ends before its main query.
 */
export function commonTableQuery(text: string, name: string): string | undefined {
  const { kinds, values, starts } = scan(text);
  let depth = 0;
  let begun: number | undefined;
  for (let index = 0; index < kinds.length; index += 1) {
    const value = values[index] ?? '';
    if (kinds[index] === TokenKind.Mark) {
      depth += Number(value === '(') - Number(value === ')');
    } else if (kinds[index] === TokenKind.Word && depth === 0) {
      begun ??= value === 'WITH' || value === 'DECLARE' ? starts[index] : undefined;
      if (value === 'SELECT' && begun !== undefined) {
        return `${text.slice(begun, starts[index])}SELECT * FROM ${quoted(name)}`;
      }
    }
  }
  return undefined;
}
