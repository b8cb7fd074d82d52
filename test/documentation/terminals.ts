/** Random tokens for the terminals that the documentation's grammar describes in words. */
import type { Random } from '../torture/harness.js';
import type { Terminal } from './derive.js';

const oneOf =
  (...tokens: readonly string[]): Terminal =>
  (random) =>
    random.pick(tokens);

const numberBetween =
  (low: number, high: number, digits = 1): Terminal =>
  (random) =>
    String(random.between(low, high)).padStart(digits, '0');

const UNITS = ['n', 'U', 'T', 's', 'm', 'h', 'd', 'w', 'M', 'y'] as const;
const LEVELS: Readonly<Record<string, number>> = { ZSTD: 22, GZIP: 9, BROTLI: 11 };

function duration(random: Random): string {
  const part = (): string => `${random.between(1, 99)}${random.pick(UNITS)}`;
  return random.next() < 0.8 ? part() : part() + part();
}

/** A level that the codec before the parenthesis supports. */
function codecLevel(random: Random, before: readonly string[]): string {
  return String(random.between(0, LEVELS[before.at(-2)?.toUpperCase() ?? ''] ?? 0));
}

/** The name that follows COLUMN in the same action. */
function sameColumn(_: Random, before: readonly string[]): string {
  const at = before.findLastIndex((token) => token.toUpperCase() === 'COLUMN');
  return before[at + 1] ?? '';
}

/** The table after the last FROM. */
function sameTable(_: Random, before: readonly string[]): string {
  return before[before.findLastIndex((token) => token.toUpperCase() === 'FROM') + 1] ?? '';
}

/** A day that is not before the previous day. */
function laterDay(random: Random, before: readonly string[]): string {
  return numberBetween(Number(before.at(-2)), 28, 2)(random, before);
}

export const TERMINALS: Readonly<Record<string, Terminal>> = {
  identifier: oneOf(
    'a',
    'b',
    'price',
    'symbol',
    'amount',
    'trades',
    'city_1',
    'x$1',
    'größe',
    '_q',
  ),
  quoted_identifier: oneOf('"a b"', '"select"', '"x ""y"""', '`tick`', '"größe"'),
  string: oneOf("'x'", "'it''s'", "''", "'2026-03-02T09:00:00Z'", '$$a$$', "$t$it's$t$"),
  escaped_string: oneOf("E'a\\tb'", "e'\\x41\\101'", "E'it\\'s \\u00e9'", "E'\\U0001F600'"),
  escape_character: oneOf("'!'", "''", "'\\'", '$1', '@c'),
  integer: oneOf('0', '7', '17_000', '17L', '70000', '9223372036854775807'),
  float: oneOf('1.5', '1e3', '2.5E-3', '1.5f', '3.0d', '.5'),
  decimal: oneOf('12.50m', '2m', '0.1m'),
  digit: numberBetween(0, 9),
  digit_to_6: numberBetween(0, 6),
  geohash: oneOf('#u33d', '#u33d/18', '##0110'),
  long256: oneOf('0x01ff', '0xABCDEF'),
  duration,
  numbered_parameter: oneOf('$1', '$2', '$65535'),
  variable: oneOf('@x', '@least_1'),
  hint: oneOf('/*+ no_index */', '/*+ */'),
  precision: numberBetween(1, 76),
  geohash_size: oneOf('1c', '12c', '1b', '60b'),
  codec_level: codecLevel,
  same_column: sameColumn,
  same_table: sameTable,
  secret: oneOf("'battery staple'", '$$p$$'),
  row_number: numberBetween(0, 2_147_483_647),
  year: numberBetween(1990, 2030, 4),
  month_number: numberBetween(1, 12, 2),
  day_number: numberBetween(1, 28, 2),
  day_number_after: laterDay,
  clock_hour: numberBetween(0, 23, 2),
  clock_minute: numberBetween(0, 59, 2),
  iso_week: numberBetween(1, 52, 2),
  iso_weekday: numberBetween(1, 7),
  small_number: numberBetween(1, 20),
};
