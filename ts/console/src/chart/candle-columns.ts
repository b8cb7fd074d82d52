/**
 * Finds the open, high, low, close and volume columns of a result by their names. This module has
 * no side effects.
 */
import type { Column } from '../api/answer.js';

export interface CandleColumns {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly volume: number | undefined;
}

type Price = 'open' | 'high' | 'low' | 'close';

/** Words in column names that indicate a price: common names and aggregate functions. */
const PRICE_NAMES: Readonly<Record<Price, readonly string[]>> = {
  open: ['o', 'op', 'open', 'first'],
  high: ['h', 'hi', 'high', 'max'],
  low: ['l', 'lo', 'low', 'min'],
  close: ['c', 'cl', 'close', 'last'],
};
const PRICES = Object.keys(PRICE_NAMES) as Price[];
const VOLUME_NAMES = ['v', 'vol', 'volume', 'turnover', 'amount', 'sum'];

interface NamedPrice {
  readonly index: number;
  readonly price: Price;
  /** What the price is about: `bid` in `first(bid)`. Empty if the name contains only the price. */
  readonly subject: string;
}

/**
 * Finds the candle columns among the numeric columns `values`. All must have the same subject:
 * `first(bid)` and `last(ask)` do not form a candle. A name without a subject (`open`) matches any
 * subject.
 */
export function candleColumns(
  columns: readonly Column[],
  values: readonly number[],
): CandleColumns | undefined {
  const wordsOf = (index: number): string[] => words(columns[index]?.name ?? '');
  const named = values.flatMap((index) => namedPrice(index, wordsOf(index)));
  for (const subject of new Set(['', ...named.map((one) => one.subject)])) {
    const find = (price: Price): number | undefined =>
      [subject, ''].flatMap((candidate) =>
        named.filter((one) => one.price === price && one.subject === candidate),
      )[0]?.index;
    const [open, high, low, close] = [find('open'), find('high'), find('low'), find('close')];
    if (open !== undefined && high !== undefined && low !== undefined && close !== undefined) {
      const volume = values.find((index) => isVolume(wordsOf(index), subject));
      return { open, high, low, close, volume };
    }
  }
  return undefined;
}

/** Splits a column name into words: `first_not_null(t.bidPrice)` becomes first, t, bid, price. */
function words(name: string): string[] {
  return name
    .replace(/_not_null\b/i, '')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

function namedPrice(index: number, name: readonly string[]): NamedPrice[] {
  const at = [0, name.length - 1].find((index) => priceOf(name[index]) !== undefined);
  const price = at === undefined ? undefined : priceOf(name[at]);
  if (price === undefined) {
    return [];
  }
  const others = name.filter((_word, index) => index !== at);
  // `max(high)` is the high of a longer candle, but `max(open)` is not.
  const isPlain = others.length === 1 && priceOf(others[0]) === price;
  return [{ index, price, subject: isPlain ? '' : others.join(' ') }];
}

function priceOf(word: string | undefined): Price | undefined {
  return PRICES.find((price) => word !== undefined && PRICE_NAMES[price].includes(word));
}

/** True if a column is named like a volume, or is a sum of something other than the price. */
function isVolume([first = '', ...others]: readonly string[], subject: string): boolean {
  const isNamed = others.length === 0 && VOLUME_NAMES.includes(first);
  return isNamed || (first === 'sum' && others.join(' ') !== subject);
}
