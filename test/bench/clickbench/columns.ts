/**
 * ClickBench's table `hits`: its 105 columns, and how a generated row fills each of them.
 *
 * Names and types are those of https://github.com/ClickHouse/ClickBench; the values are generated.
 * Their distributions approximate the original: the number of distinct users is a sixth of the
 * number of rows, one row in eight has a search phrase, one in twenty a phone, and one in 150 an
 * advertisement.
 */
import { hash64, latinWord, phrase, randomNumbers, scramble } from './random.js';

type Type =
  'BYTE' | 'CHAR' | 'INT' | 'IPv4' | 'LONG' | 'SHORT' | 'SYMBOL' | 'TIMESTAMP' | 'VARCHAR';

/** A cell. TIMESTAMP values are in seconds since 1970; the empty string is null. */
export type Value = number | string | bigint;

/** Constants that occur in the queries. */
export const NAMED = {
  counter: 62,
  userId: 435_090_932_899_640_449n,
  refererHash: 3_594_120_000_172_545_465n,
  urlHash: 2_868_770_270_353_813_622n,
};

const START_SECONDS = Date.UTC(2013, 6, 1) / 1000;
const SPAN_SECONDS = 31 * 86_400;
const DAY_SECONDS = 86_400;

/** The values that several columns of a row depend on. */
class Row {
  readonly random: () => number;
  readonly position: number;
  readonly user: number;
  readonly page: number;
  readonly seconds: number;
  readonly searched: number;
  readonly referer: number;
  readonly phone: number;
  readonly isGoogle: boolean;
  readonly counter: number;

  constructor(random: () => number, position: number, rows: number) {
    this.random = random;
    this.position = position;
    this.seconds = START_SECONDS + Math.floor((position / rows) * SPAN_SECONDS);
    this.user = this.skewed(rows / 5, 2);
    this.counter = this.chance(0.04) ? NAMED.counter : this.skewed(6_500, 3);
    this.page = this.skewed(rows / 4, 3);
    this.isGoogle = this.page % 97 === 3;
    this.searched = this.chance(0.13) ? 1 + this.skewed(rows / 12, 3) : 0;
    this.referer = this.chance(0.81) ? 1 + this.skewed(rows / 6, 3) : 0;
    this.phone = scramble(this.user) % 18 === 0 ? 1 + this.skewed(166, 2) : 0;
  }

  /** Returns a random integer below `count`; a higher power makes low values more frequent. */
  skewed(count: number, power: number): number {
    return Math.floor(Math.max(1, count) * this.random() ** power);
  }

  chance(fraction: number): boolean {
    return this.random() < fraction;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.skewed(values.length, 2)] as T;
  }

  /** Returns a duration in milliseconds; 0 in most rows. */
  timing(maximum: number): number {
    return this.chance(0.3) ? this.skewed(maximum, 4) : 0;
  }

  /** Returns a string that is non-empty in the given fraction of rows. */
  rare(fraction: number, value: () => string): string {
    return this.chance(fraction) ? value() : '';
  }
}

const WIDTHS = [1366, 1920, 1280, 1024, 1440, 1600, 1680, 320, 768, 0];
const HEIGHTS = [768, 1080, 1024, 800, 900, 1050, 480, 600, 0];
const CHARSETS = ['utf-8', 'windows-1251', 'koi8-r', 'iso-8859-1'];
const CAMPAIGN_SOURCES = ['yandex', 'google', 'direct', 'mail', 'news'];

function url(page: number, isGoogle: boolean): string {
  const site = scramble(page) % 3_000;
  const host = isGoogle ? hostOfGoogle(page) : `${latinWord(site)}${site % 90}.ru`;
  const path = `${latinWord(page + 11)}/${latinWord(page + 77)}/${page}`;
  return `http://${host}/${path}${page % 4 === 0 ? `?page=${page % 50}&sort=${page % 3}` : ''}`;
}

/** Half of the hosts contain `.google.`; the other half contain only `google`. */
function hostOfGoogle(page: number): string {
  return page % 2 === 0 ? 'www.google.ru' : `googlemaps${page % 7}.ru`;
}

function refererOf(row: Row): string {
  if (row.referer === 0) {
    return '';
  }
  const prefix = row.referer % 3 === 0 ? 'https://www.' : 'http://';
  const site = scramble(row.referer) % 200;
  return `${prefix}${latinWord(site)}.com/${latinWord(row.referer)}/${row.referer}`;
}

function titleOf(row: Row): string {
  if (scramble(row.page) % 7 === 0 && !row.isGoogle) {
    return '';
  }
  return row.isGoogle ? `${phrase(row.page, 2)} - Google` : phrase(row.page, 3 + (row.page % 4));
}

function refererHash(row: Row): bigint {
  return row.referer % 50 === 1 ? NAMED.refererHash : hash64(row.referer, 5);
}

function urlHash(row: Row): bigint {
  return row.page % 20 === 1 ? NAMED.urlHash : hash64(row.page, 6);
}

function address(number: number): string {
  const bits = scramble(number + 17);
  return `${1 + (bits >>> 24) % 223}.${(bits >>> 16) & 255}.${(bits >>> 8) & 255}.${bits & 255}`;
}

type Column = readonly [name: string, type: Type, value: (row: Row) => Value];

export const COLUMNS: readonly Column[] = [
  ['WatchID', 'LONG', (row) => hash64(row.position, 1)],
  ['JavaEnable', 'BYTE', (row) => Number(row.chance(0.6))],
  ['Title', 'VARCHAR', titleOf],
  ['GoodEvent', 'BYTE', () => 1],
  ['EventTime', 'TIMESTAMP', (row) => row.seconds],
  ['EventDate', 'TIMESTAMP', (row) => row.seconds - (row.seconds % DAY_SECONDS)],
  ['CounterID', 'INT', (row) => row.counter],
  ['ClientIP', 'IPv4', (row) => address(row.user)],
  ['RegionID', 'INT', (row) => 1 + row.skewed(9_000, 4)],
  ['UserID', 'LONG', (row) => (row.user === 1 ? NAMED.userId : hash64(row.user, 2))],
  ['CounterClass', 'BYTE', (row) => row.skewed(3, 2)],
  ['OS', 'SHORT', (row) => row.skewed(120, 3)],
  ['UserAgent', 'SHORT', (row) => row.skewed(80, 2)],
  ['URL', 'VARCHAR', (row) => url(row.page, row.isGoogle)],
  ['Referer', 'VARCHAR', refererOf],
  ['IsRefresh', 'BYTE', (row) => Number(row.chance(0.15))],
  ['RefererCategoryID', 'SHORT', (row) => row.skewed(16_000, 5)],
  ['RefererRegionID', 'INT', (row) => row.skewed(9_000, 4)],
  ['URLCategoryID', 'SHORT', (row) => row.skewed(16_000, 5)],
  ['URLRegionID', 'INT', (row) => row.skewed(9_000, 4)],
  ['ResolutionWidth', 'SHORT', (row) => row.pick(WIDTHS)],
  ['ResolutionHeight', 'SHORT', (row) => row.pick(HEIGHTS)],
  ['ResolutionDepth', 'SHORT', (row) => row.pick([24, 32, 16, 0])],
  ['FlashMajor', 'BYTE', (row) => row.pick([11, 10, 0, 9])],
  ['FlashMinor', 'BYTE', (row) => row.skewed(10, 2)],
  ['FlashMinor2', 'SYMBOL', (row) => row.rare(0.4, () => `${700 + row.skewed(60, 2)}`)],
  ['NetMajor', 'BYTE', (row) => row.skewed(5, 3)],
  ['NetMinor', 'BYTE', (row) => row.skewed(6, 3)],
  ['UserAgentMajor', 'SHORT', (row) => row.skewed(40, 2)],
  ['UserAgentMinor', 'SYMBOL', (row) => row.rare(0.5, () => `D${row.skewed(20, 2)}`)],
  ['CookieEnable', 'BYTE', (row) => Number(row.chance(0.97))],
  ['JavascriptEnable', 'BYTE', (row) => Number(row.chance(0.98))],
  ['IsMobile', 'BYTE', (row) => Number(row.phone > 0)],
  ['MobilePhone', 'SHORT', (row) => row.phone % 40],
  ['MobilePhoneModel', 'SYMBOL', (row) => (row.phone === 0 ? '' : `model ${row.phone}`)],
  ['Params', 'SYMBOL', (row) => row.rare(0.03, () => latinWord(row.skewed(500, 2)))],
  ['IPNetworkID', 'INT', (row) => scramble(row.user) % 4_000_000],
  ['TraficSourceID', 'INT', (row) => row.pick([-1, 0, 1, 2, 3, 6, 4, 5])],
  ['SearchEngineID', 'SHORT', (row) => (row.searched === 0 ? 0 : 1 + row.skewed(90, 4))],
  [
    'SearchPhrase',
    'VARCHAR',
    (row) => (row.searched === 0 ? '' : phrase(row.searched, 1 + (row.searched % 4))),
  ],
  ['AdvEngineID', 'SHORT', (row) => (row.chance(0.007) ? 1 + row.skewed(60, 3) : 0)],
  ['IsArtifical', 'BYTE', (row) => Number(row.chance(0.02))],
  ['WindowClientWidth', 'SHORT', (row) => 300 + row.skewed(1_600, 1)],
  ['WindowClientHeight', 'SHORT', (row) => 200 + row.skewed(900, 1)],
  ['ClientTimeZone', 'SHORT', (row) => row.pick([240, 180, 360, 120, -1])],
  ['ClientEventTime', 'TIMESTAMP', (row) => row.seconds + row.skewed(4_000, 4)],
  ['SilverlightVersion1', 'BYTE', (row) => row.pick([5, 0, 4])],
  ['SilverlightVersion2', 'BYTE', (row) => row.skewed(2, 2)],
  ['SilverlightVersion3', 'SHORT', (row) => row.skewed(20_000, 6)],
  ['SilverlightVersion4', 'BYTE', () => 0],
  ['PageCharset', 'SYMBOL', (row) => row.pick(CHARSETS)],
  ['CodeVersion', 'SHORT', (row) => 1_000 + row.skewed(900, 2)],
  ['IsLink', 'BYTE', (row) => Number(row.chance(0.2))],
  ['IsDownload', 'BYTE', (row) => Number(row.chance(0.02))],
  ['IsNotBounce', 'BYTE', (row) => Number(row.chance(0.4))],
  ['FUniqID', 'LONG', (row) => hash64(row.user, 3)],
  ['OriginalURL', 'VARCHAR', (row) => row.rare(0.3, () => url(row.page, false))],
  ['HID', 'INT', (row) => Math.floor(row.random() * 2_000_000_000)],
  ['IsOldCounter', 'BYTE', () => 0],
  ['IsEvent', 'BYTE', () => 0],
  ['IsParameter', 'BYTE', () => 0],
  ['DontCountHits', 'BYTE', (row) => Number(row.chance(0.1))],
  ['WithHash', 'BYTE', (row) => Number(row.chance(0.05))],
  ['HitColor', 'CHAR', (row) => row.pick(['5', 'D', 'T', 'E', '1'])],
  ['LocalEventTime', 'TIMESTAMP', (row) => row.seconds + 14_400],
  ['Age', 'BYTE', (row) => row.pick([0, 31, 26, 22, 40, 50])],
  ['Sex', 'BYTE', (row) => row.skewed(3, 2)],
  ['Income', 'BYTE', (row) => row.skewed(5, 2)],
  ['Interests', 'SHORT', (row) => row.skewed(16_000, 4)],
  ['Robotness', 'SHORT', (row) => row.skewed(100, 6)],
  ['RemoteIP', 'IPv4', (row) => address(row.user + 500_000)],
  ['WindowName', 'INT', (row) => (row.chance(0.7) ? -1 : row.skewed(100_000, 2))],
  ['OpenerName', 'INT', (row) => (row.chance(0.8) ? -1 : row.skewed(100_000, 2))],
  ['HistoryLength', 'SHORT', (row) => row.skewed(50, 3) - 1],
  ['BrowserLanguage', 'SYMBOL', (row) => row.pick(['ru', 'en', 'uk', 'be', 'kk'])],
  ['BrowserCountry', 'SYMBOL', (row) => row.pick(['RU', 'UA', 'BY', 'KZ', 'US', 'DE'])],
  ['SocialNetwork', 'SYMBOL', (row) => row.rare(0.01, () => latinWord(row.skewed(8, 2)))],
  ['SocialAction', 'SYMBOL', (row) => row.rare(0.01, () => row.pick(['like', 'share']))],
  ['HTTPError', 'BYTE', (row) => (row.chance(0.001) ? 1 : 0)],
  ['SendTiming', 'INT', (row) => row.timing(2_000)],
  ['DNSTiming', 'INT', (row) => row.timing(1_000)],
  ['ConnectTiming', 'INT', (row) => row.timing(2_000)],
  ['ResponseStartTiming', 'INT', (row) => row.timing(5_000)],
  ['ResponseEndTiming', 'INT', (row) => row.timing(8_000)],
  ['FetchTiming', 'INT', (row) => row.timing(30_000)],
  ['SocialSourceNetworkID', 'SHORT', (row) => (row.chance(0.02) ? row.skewed(20, 2) : 0)],
  ['SocialSourcePage', 'VARCHAR', (row) => row.rare(0.01, () => url(row.referer, false))],
  ['ParamPrice', 'LONG', (row) => (row.chance(0.01) ? row.skewed(1_000_000, 3) : 0)],
  ['ParamOrderID', 'SYMBOL', (row) => row.rare(0.005, () => `order ${row.skewed(5_000, 1)}`)],
  ['ParamCurrency', 'SYMBOL', (row) => row.rare(0.05, () => row.pick(['RUB', 'USD', 'EUR']))],
  ['ParamCurrencyID', 'SHORT', (row) => row.skewed(4, 4)],
  ['OpenstatServiceName', 'SYMBOL', (row) => row.rare(0.01, () => latinWord(row.skewed(9, 2)))],
  ['OpenstatCampaignID', 'SYMBOL', (row) => row.rare(0.01, () => `${row.skewed(900, 2)}`)],
  ['OpenstatAdID', 'VARCHAR', (row) => row.rare(0.01, () => `ad ${row.skewed(9_000, 2)}`)],
  ['OpenstatSourceID', 'SYMBOL', (row) => row.rare(0.01, () => `s${row.skewed(400, 2)}`)],
  ['UTMSource', 'SYMBOL', (row) => row.rare(0.02, () => row.pick(CAMPAIGN_SOURCES))],
  ['UTMMedium', 'SYMBOL', (row) => row.rare(0.02, () => row.pick(['cpc', 'banner', 'email']))],
  ['UTMCampaign', 'SYMBOL', (row) => row.rare(0.02, () => latinWord(row.skewed(900, 2)))],
  ['UTMContent', 'SYMBOL', (row) => row.rare(0.01, () => `c${row.skewed(2_000, 2)}`)],
  ['UTMTerm', 'SYMBOL', (row) => row.rare(0.01, () => latinWord(row.skewed(3_000, 2)))],
  ['FromTag', 'SYMBOL', (row) => row.rare(0.01, () => latinWord(row.skewed(300, 2)))],
  ['HasGCLID', 'BYTE', (row) => Number(row.chance(0.005))],
  ['RefererHash', 'LONG', refererHash],
  ['URLHash', 'LONG', urlHash],
  ['CLID', 'INT', (row) => (row.chance(0.03) ? row.skewed(2_000_000, 2) : 0)],
];

/** Generates `count` rows in time order, determined by the seed. */
export function* hitRows(count: number, seed: number): Generator<readonly Value[]> {
  const random = randomNumbers(seed);
  for (let position = 0; position < count; position += 1) {
    const row = new Row(random, position, count);
    yield COLUMNS.map(([, , value]) => value(row));
  }
}

/** Returns the row as a CSV line. No string contains a comma, a quote or a line break. */
export function csvLine(row: readonly Value[]): string {
  const cells = row.map((value, index) =>
    COLUMNS[index]?.[1] === 'TIMESTAMP' ? iso(Number(value)) : String(value),
  );
  return `${cells.join(',')}\n`;
}

export function csvHeader(): string {
  return `${COLUMNS.map(([name]) => name).join(',')}\n`;
}

function iso(seconds: number): string {
  return `${new Date(seconds * 1000).toISOString().slice(0, -1)}000Z`;
}
