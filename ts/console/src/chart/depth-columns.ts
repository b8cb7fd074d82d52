/** Finds the columns of an order book in a result. This module has no side effects. */
import type { Column, Row } from '../api/answer.js';

/** Layout of an order book: two array columns, or one row per price. */
export type DepthColumns =
  | { readonly kind: 'arrays'; readonly bids: number; readonly asks: number }
  | {
      readonly kind: 'rows';
      readonly side: number;
      readonly price: number;
      readonly amount: number;
    };

const BID = /^bids?(?:_.*)?$/i;
const ASK = /^(?:asks?|offers?)(?:_.*)?$/i;
const SIDES = /^(?:b|bids?|buy|buyer|a|s|asks?|sell|seller|offers?)$/i;

/** Finds the columns of an order book by their names and types. */
export function depthColumns(
  columns: readonly Column[],
  rows: readonly Row[],
  numbers: readonly number[],
): DepthColumns | undefined {
  const find = (name: RegExp, among: (index: number) => boolean): number =>
    columns.findIndex((column, index) => name.test(column.name) && among(index));
  const isArray = (index: number): boolean => rows.some((row) => Array.isArray(row[index]));
  const [bids, asks] = [find(BID, isArray), find(ASK, isArray)];
  if (bids >= 0 && asks >= 0) {
    return { kind: 'arrays', bids, asks };
  }
  const isNumber = (index: number): boolean => numbers.includes(index);
  const side = find(/^(?:side|direction)$/i, (index) => !isNumber(index));
  const price = find(/^(?:price|px)$/i, isNumber);
  const amount = find(/^(?:amount|size|qty|quantity|volume)$/i, isNumber);
  const isSided =
    side >= 0 && rows.slice(0, 1000).every((row) => SIDES.test(String(row[side] ?? '')));
  return isSided && price >= 0 && amount >= 0 ? { kind: 'rows', side, price, amount } : undefined;
}
