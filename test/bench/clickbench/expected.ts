/**
 * The expected answer to each of the 43 queries, computed with plain loops over the generated rows.
 * An answer contains the ordered rows before LIMIT is applied.
 */
import { COLUMNS, NAMED, type Value } from './columns.js';

export type Cell = number | string | bigint | null;
type Hit = Readonly<Record<string, Cell>>;
type Answer = readonly (readonly Cell[])[];
type Aggregate = (rows: readonly Hit[]) => Cell;
type Test = (row: Hit) => boolean;
type Key = string | ((row: Hit) => Cell);

const MINUTE_SECONDS = 60;
const SITE = /^https?:\/\/(?:www\.)?([^/]+)\/.*$/;

/** Returns the cells of a generated row by column name. Times are strings, as in an answer. */
export function hitOf(values: readonly Value[]): Hit {
  const cells = COLUMNS.map(([name, type], index): [string, Cell] => {
    const value = values[index] ?? '';
    const cell = type === 'TIMESTAMP' ? time(Number(value)) : value;
    return [name, cell === '' ? null : cell];
  });
  return Object.fromEntries(cells);
}

function time(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, -1)}000Z`;
}

const count: Aggregate = (rows) => rows.length;
const number = (row: Hit, name: string) => Number(row[name]);
const text = (row: Hit, name: string) => String(row[name] ?? '');
const present = (name: string) => (row: Hit) => row[name] !== null;

function sum(name: string, added = 0): Aggregate {
  return (rows) => rows.reduce((total, row) => total + number(row, name) + added, 0);
}

function avg(of: string | ((row: Hit) => number)): Aggregate {
  const value = typeof of === 'string' ? (row: Hit) => number(row, of) : of;
  return (rows) => rows.reduce((total, row) => total + value(row), 0) / rows.length;
}

function distinct(name: string): Aggregate {
  return (rows) => new Set(rows.map((row) => row[name]).filter((cell) => cell !== null)).size;
}

function extreme(name: string, isBetter: (one: string, other: string) => boolean): Aggregate {
  return (rows) => {
    const values = rows.filter(present(name)).map((row) => text(row, name));
    return values.length === 0
      ? null
      : values.reduce((best, one) => (isBetter(one, best) ? one : best));
  };
}

const min = (name: string) => extreme(name, (one, other) => one < other);
const max = (name: string) => extreme(name, (one, other) => one > other);

const one = (rows: readonly Hit[], ...aggregates: Aggregate[]): Answer => [
  aggregates.map((aggregate) => aggregate(rows)),
];

/** Returns one row for each group: its keys, then its aggregates. */
function group(rows: readonly Hit[], keys: readonly Key[], ...aggregates: Aggregate[]) {
  const groups = new Map<string, { keys: Cell[]; rows: Hit[] }>();
  for (const row of rows) {
    const cells = keys.map((key) => (typeof key === 'string' ? (row[key] ?? null) : key(row)));
    const name = cells.map((cell) => (cell === null ? 'null' : `'${String(cell)}'`)).join();
    const found = groups.get(name) ?? { keys: cells, rows: [] };
    found.rows.push(row);
    groups.set(name, found);
  }
  return [...groups.values()].map((found) => [
    ...found.keys,
    ...aggregates.map((aggregate) => aggregate(found.rows)),
  ]);
}

function top(rows: readonly Cell[][], column: number): Answer {
  return rows.toSorted((left, right) => Number(right[column]) - Number(left[column]));
}

/** Returns the address minus `distance`. */
function before(name: string, distance: number) {
  return (row: Hit): string => {
    const bytes = text(row, name).split('.').map(Number);
    const bits = bytes.reduce((total, byte) => total * 256 + byte, 0) - distance;
    return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join('.');
  };
}

const has = (name: string, part: string) => (row: Hit) => text(row, name).includes(part);
const bytesOf = (name: string) => (row: Hit) => Buffer.byteLength(text(row, name));
const both =
  (...tests: Test[]): Test =>
  (row) =>
    tests.every((test) => test(row));
const advertised: Test = (row) => row['AdvEngineID'] !== 0;
const named = present('SearchPhrase');
const fresh: Test = (row) => row['CounterID'] === NAMED.counter && row['IsRefresh'] === 0;
const counted: Test = (row) => fresh(row) && row['DontCountHits'] === 0;
const minute = (row: Hit) => Number(text(row, 'EventTime').slice(14, 16));
const middle: Test = (row) => /^2013-07-1[45]/.test(text(row, 'EventTime'));
const site = (row: Hit) => text(row, 'Referer').replace(SITE, '$1');
const source = (row: Hit) =>
  row['SearchEngineID'] === 0 && row['AdvEngineID'] === 0 ? (row['Referer'] ?? null) : null;

function startOfMinute(row: Hit): string {
  const seconds = Date.parse(text(row, 'EventTime')) / 1000;
  return time(seconds - (seconds % MINUTE_SECONDS));
}

/** Rows, refreshes and average width for each key and address. */
const perAddress = (rows: readonly Hit[], key: string) =>
  top(group(rows, [key, 'ClientIP'], count, sum('IsRefresh'), avg('ResolutionWidth')), 2);

function longest(rows: readonly Hit[], key: Key, column: string, ...more: Aggregate[]): Answer {
  const groups = group(rows.filter(present(column)), [key], avg(bytesOf(column)), count, ...more);
  return top(groups, 1);
}

const ADVERTISING: readonly Aggregate[] = [
  sum('AdvEngineID'),
  count,
  avg('ResolutionWidth'),
  distinct('UserID'),
];
const TRAFFIC: readonly Key[] = ['TraficSourceID', 'SearchEngineID', 'AdvEngineID', source, 'URL'];
const PHONE: readonly Key[] = ['MobilePhone', 'MobilePhoneModel'];
const users = distinct('UserID');

/**
 * Returns the complete answers, in query order. `minimum` is the minimum group size in q28 and q29.
 */
export function expectedAnswers(hits: readonly Hit[], minimum: number): readonly Answer[] {
  const searched = hits.filter(named);
  const phones = hits.filter(present('MobilePhoneModel'));
  const google = hits.filter(has('URL', 'google'));
  const moreThan = (rows: Answer) => rows.filter((row) => Number(row[2]) > minimum);
  const titled = searched.filter(
    both(has('Title', 'Google'), (row) => !text(row, 'URL').includes('.google.')),
  );
  const phrases = searched.map((row) => [row['SearchPhrase'] ?? null]);
  return [
    one(hits, count),
    one(hits.filter(advertised), count),
    one(hits, ...ADVERTISING.slice(0, 3)),
    one(hits, avg('UserID')),
    one(hits, users),
    one(hits, distinct('SearchPhrase')),
    one(hits, min('EventTime'), max('EventTime')),
    top(group(hits.filter(advertised), ['AdvEngineID'], count), 1),
    top(group(hits, ['RegionID'], users), 1),
    top(group(hits, ['RegionID'], ...ADVERTISING), 2),
    top(group(phones, ['MobilePhoneModel'], users), 1),
    top(group(phones, PHONE, users), 2),
    top(group(searched, ['SearchPhrase'], count), 1),
    top(group(searched, ['SearchPhrase'], users), 1),
    top(group(searched, ['SearchEngineID', 'SearchPhrase'], count), 2),
    top(group(hits, ['UserID'], count), 1),
    top(group(hits, ['UserID', 'SearchPhrase'], count), 2),
    group(hits, ['UserID', 'SearchPhrase'], count),
    top(group(hits, ['UserID', minute, 'SearchPhrase'], count), 3),
    hits.filter((row) => row['UserID'] === NAMED.userId).map((row) => [row['UserID'] ?? null]),
    one(google, count),
    top(group(google.filter(named), ['SearchPhrase'], min('URL'), count), 2),
    top(group(titled, ['SearchPhrase'], min('URL'), min('Title'), count, users), 3),
    google.map((row) => Object.values(row)),
    phrases,
    phrases.toSorted((left, right) => (String(left[0]) < String(right[0]) ? -1 : 1)),
    phrases,
    moreThan(longest(hits, 'CounterID', 'URL')),
    moreThan(longest(hits, site, 'Referer', min('Referer'))),
    one(hits, ...Array.from({ length: 90 }, (_, added) => sum('ResolutionWidth', added))),
    perAddress(searched, 'SearchEngineID'),
    perAddress(searched, 'WatchID'),
    perAddress(hits, 'WatchID'),
    top(group(hits, ['URL'], count), 1),
    top(group(hits, [() => 1, 'URL'], count), 2),
    top(group(hits, ['ClientIP', ...[1, 2, 3].map((n) => before('ClientIP', n))], count), 4),
    top(group(hits.filter(counted), ['URL'], count), 1),
    top(group(hits.filter(both(counted, present('Title'))), ['Title'], count), 1),
    top(group(hits.filter(both(fresh, isFollowed)), ['URL'], count), 1),
    top(group(hits.filter(fresh), TRAFFIC, count), 5),
    top(group(hits.filter(both(fresh, isReferred)), ['URLHash', 'EventTime'], count), 2),
    top(group(hits.filter(both(counted, isNamedPage)), SIZE, count), 2),
    group(hits.filter(both(counted, middle)), [startOfMinute], count),
  ];
}

const SIZE: readonly Key[] = ['WindowClientWidth', 'WindowClientHeight'];
const isFollowed: Test = (row) => row['IsLink'] !== 0 && row['IsDownload'] === 0;
const isNamedPage: Test = (row) => row['URLHash'] === NAMED.urlHash;
const isReferred: Test = (row) =>
  (row['TraficSourceID'] === -1 || row['TraficSourceID'] === 6) &&
  row['RefererHash'] === NAMED.refererHash;
