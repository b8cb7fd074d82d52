/**
 * Timestamp formats. Finds the pattern that matches all values in a column, component by component
 * (weekday, date, time, zone), or the unit of numeric timestamps since 1970.
 */

/** How to convert strings to timestamps. */
export interface TimestampFormat {
  readonly type: 'TIMESTAMP' | 'TIMESTAMP_NS';
  /** The strings' pattern; absent for ISO. */
  readonly pattern?: string;
}

/** Dates that match several patterns with different meanings. */
interface AmbiguousDates {
  readonly patterns: readonly string[];
}

interface FormatPart {
  readonly pattern: string;
  readonly source: string;
  /** Order of day, month and year, for a numeric date. */
  readonly order?: string;
}

const DAY = '(?:0[1-9]|[12]\\d|3[01])';
const MONTH = '(?:0[1-9]|1[0-2])';
const SHORT_DAY = '(?:0?[1-9]|[12]\\d|3[01])';
const SHORT_MONTH = '(?:0?[1-9]|1[0-2])';
const YEAR = '[12]\\d{3}';
const NAME =
  '(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|' +
  'Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)';
const WEEKDAY =
  '(?:Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|' +
  'Sun(?:day)?)';
const HOUR = '(?:[01]\\d|2[0-3])';
const SHORT_HOUR = '(?:[01]?\\d|2[0-3])';
const HALF_HOUR = '(?:0?[1-9]|1[0-2])';
const SIXTY = '[0-5]\\d';
const ZONES = '(?:Z|UTC|GMT|EST|EDT|CST|CDT|MST|MDT|PST|PDT|CET|CEST|BST|[+-]\\d{2}(?::?\\d{2})?)';

const BLANK: FormatPart = { pattern: '', source: '' };

const FIELDS: Readonly<Record<string, string>> = { y: 'yyyy', m: 'MM', d: 'dd' };
const SOURCES: Readonly<Record<string, string>> = {
  yyyy: YEAR,
  yy: '\\d\\d',
  MM: MONTH,
  M: SHORT_MONTH,
  dd: DAY,
  d: SHORT_DAY,
};

/**
 * Returns the patterns for numeric dates in each order: with two-digit day and month, with one or
 * two digits, and with a short year.
 */
function numeric(separator: string): FormatPart[] {
  // In dates with points, the day always precedes the month.
  const orders = separator === '.' ? ['ymd', 'dmy'] : ['ymd', 'dmy', 'mdy'];
  const shortYears = separator === '.' ? ['dmy'] : orders;
  const widths: readonly (readonly [readonly string[], (field: string) => string])[] = [
    [orders, (field) => field],
    [orders, (field) => (field.startsWith('y') ? field : field.slice(1))],
    [shortYears, (field) => (field.startsWith('y') ? 'yy' : field.slice(1))],
  ];
  return widths.flatMap(([known, width]) =>
    known.map((order) => {
      const fields = Array.from(order, (letter) => width(FIELDS[letter] ?? ''));
      const source = fields.map((field) => SOURCES[field] ?? '').join(`\\${separator}`);
      return { order, pattern: fields.join(separator), source };
    }),
  );
}

const NAMED: readonly FormatPart[] = [
  { pattern: 'MMM d, yyyy', source: `${NAME} ${SHORT_DAY}, ${YEAR}` },
  { pattern: 'MMM d yyyy', source: `${NAME} ${SHORT_DAY} ${YEAR}` },
  ...[' ', '-', '/'].map((separator) => ({
    pattern: `d${separator}MMM${separator}yyyy`,
    source: [SHORT_DAY, NAME, YEAR].join(separator),
  })),
  { pattern: 'd. MMM yyyy', source: `${SHORT_DAY}\\. ${NAME} ${YEAR}` },
  { pattern: 'd-MMM-yy', source: `${SHORT_DAY}-${NAME}-\\d\\d` },
  { pattern: 'yyyy-MMM-dd', source: `${YEAR}-${NAME}-${DAY}` },
];

const COMPACT: FormatPart = {
  order: 'ymd',
  pattern: 'yyyyMMdd',
  source: `(?:19|20)\\d\\d${MONTH}${DAY}`,
};

const WEEKDAYS: readonly FormatPart[] = [
  BLANK,
  { pattern: 'E, ', source: `${WEEKDAY}, ` },
  { pattern: 'E ', source: `${WEEKDAY} ` },
];
const DATES: readonly FormatPart[] = [...['/', '.', '-'].flatMap(numeric), ...NAMED, COMPACT];
const JOINTS: readonly FormatPart[] = [' ', 'T', ', ', ':', ' - ', ''].map((text) => ({
  pattern: text,
  source: text,
}));

function clocks(): FormatPart[] {
  const timesOfDay: readonly FormatPart[] = [
    { pattern: 'HH:mm:ss', source: `${HOUR}:${SIXTY}:${SIXTY}` },
    { pattern: 'H:mm:ss', source: `${SHORT_HOUR}:${SIXTY}:${SIXTY}` },
  ];
  const fractions = timesOfDay.flatMap(({ pattern, source }) =>
    ['.', ','].flatMap((mark) => [
      { pattern: `${pattern}${mark}U+`, source: `${source}\\${mark}\\d{1,6}` },
      { pattern: `${pattern}${mark}N+`, source: `${source}\\${mark}\\d{1,9}` },
    ]),
  );
  const halves = ['h:mm:ss', 'h:mm'].flatMap((pattern) => {
    const seconds = pattern === 'h:mm' ? '' : `:${SIXTY}`;
    const source = `${HALF_HOUR}:${SIXTY}${seconds}`;
    return [
      { pattern: `${pattern} a`, source: `${source} [AaPp][Mm]` },
      { pattern: `${pattern}a`, source: `${source}[AaPp][Mm]` },
    ];
  });
  return [
    ...timesOfDay,
    ...fractions,
    { pattern: 'HH:mm', source: `${HOUR}:${SIXTY}` },
    { pattern: 'H:mm', source: `${SHORT_HOUR}:${SIXTY}` },
    ...halves,
    { pattern: 'HHmmss', source: `${HOUR}${SIXTY}${SIXTY}` },
    { pattern: 'HHmm', source: `${HOUR}${SIXTY}` },
  ];
}

const CLOCKS: readonly FormatPart[] = clocks();
const OFFSETS: readonly FormatPart[] = [
  BLANK,
  { pattern: 'z', source: ZONES },
  { pattern: ' z', source: ` ${ZONES}` },
];

function then(head: FormatPart, tail: FormatPart): FormatPart {
  const order = head.order ?? tail.order;
  const joined = { pattern: head.pattern + tail.pattern, source: head.source + tail.source };
  return order === undefined ? joined : { ...joined, order };
}

function begins(text: string, part: FormatPart): boolean {
  return new RegExp(`^(?:${part.source})`, 'i').test(text);
}

function isAll(text: string, part: FormatPart): boolean {
  return new RegExp(`^(?:${part.source})$`, 'i').test(text);
}

/** Returns all patterns that match a string. */
function formsOf(text: string): FormatPart[] {
  if (text.length > MAX_DATE_LENGTH || !BEGINNING.test(text)) {
    return [];
  }
  const dated = WEEKDAYS.filter((day) => begins(text, day)).flatMap((day) =>
    DATES.map((date) => then(day, date)).filter((head) => begins(text, head)),
  );
  const timed = dated.flatMap((date) =>
    JOINTS.map((joint) => then(date, joint))
      .filter((head) => begins(text, head))
      .flatMap((head) => CLOCKS.map((clock) => then(head, clock)))
      .filter((head) => begins(text, head))
      .flatMap((head) => OFFSETS.map((offset) => then(head, offset))),
  );
  return [...dated, ...timed].filter((form) => isAll(text, form));
}

/** A quick test that excludes most columns that do not contain dates. */
const BEGINNING =
  /^(?:(?:19|20)\d{6}|\d{1,4}([/.-])\d{1,2}\1\d|[A-Za-z]{3}[a-z]*[, ]|\d{1,4}[./ -]+[A-Za-z]{3})/;

/** Maximum length of a date; longer strings are not dates. */
const MAX_DATE_LENGTH = 64;

/**
 * Returns the pattern that matches all strings. If several match and give different dates, returns
 * one for each order of day, month and year; null if none matches.
 */
export function datePattern(texts: readonly string[]): TimestampFormat | AmbiguousDates | null {
  const forms = formsOf(texts[0] ?? '').filter(
    (form) => countMatches(texts, form) === texts.length,
  );
  const [form] = forms;
  if (form === undefined) {
    return null;
  }
  const orders = byOrder(forms);
  return orders.length > 1
    ? { patterns: orders.map(({ pattern }) => pattern) }
    : timestampFormat(form.pattern);
}

function timestampFormat(pattern: string): TimestampFormat {
  return { type: pattern.includes('N+') ? 'TIMESTAMP_NS' : 'TIMESTAMP', pattern };
}

/** Returns the first pattern for each order of day, month and year. */
function byOrder(forms: readonly FormatPart[]): FormatPart[] {
  return forms.filter((form, at) => forms.findIndex(({ order }) => order === form.order) === at);
}

function countMatches(texts: readonly string[], { source }: FormatPart): number {
  const fullMatch = new RegExp(`^(?:${source})$`, 'i');
  return texts.filter((text) => text.length <= MAX_DATE_LENGTH && fullMatch.test(text)).length;
}

/**
 * Number of strings from which patterns are derived; more than one, because the first may be
 * invalid.
 */
const MODEL_TEXTS = 3;

/**
 * Returns the formats that match the most strings: one pattern per order, or the units since 1970.
 */
export function timestampFormats(texts: readonly string[]): readonly TimestampFormat[] {
  const units = UNITS.filter(({ perSecond }) =>
    texts.some((text) => EPOCH.test(text) && isEpoch(Number(text), perSecond)),
  );
  if (units.length > 0) {
    return units.map(({ type, pattern }) => ({ type, pattern }));
  }
  const models = [...new Set(texts.slice(0, MODEL_TEXTS))].flatMap(formsOf);
  const forms = [...new Map(models.map((form) => [form.pattern, form])).values()];
  const counted = forms.map((form) => ({ form, count: countMatches(texts, form) }));
  const best = counted.toSorted((a, b) => b.count - a.count);
  return byOrder(best.map(({ form }) => form)).map(({ pattern }) => timestampFormat(pattern));
}

/**
 * Seconds since 1970 for the beginning of 1990 and of 2100; a number outside this range is not
 * assumed to be a timestamp.
 */
const EARLIEST = 631_152_000;
const LATEST = 4_102_444_800;

const UNITS = [
  { pattern: 'epoch_s', perSecond: 1, type: 'TIMESTAMP' },
  { pattern: 'epoch_ms', perSecond: 1e3, type: 'TIMESTAMP' },
  { pattern: 'epoch_us', perSecond: 1e6, type: 'TIMESTAMP' },
  { pattern: 'epoch_ns', perSecond: 1e9, type: 'TIMESTAMP_NS' },
] as const;

const EPOCH = /^\d{9,19}(?:\.\d{1,9})?$/;

function isEpoch(number: number, perSecond: number): boolean {
  return number >= EARLIEST * perSecond && number < LATEST * perSecond;
}

/** Returns the unit in which all values, read as time since 1970, fall between 1990 and 2100. */
export function epochForm(texts: readonly string[]): TimestampFormat | null {
  if (!texts.every((text) => EPOCH.test(text))) {
    return null;
  }
  const numbers = texts.map(Number);
  const unit = UNITS.find(({ perSecond }) => numbers.every((number) => isEpoch(number, perSecond)));
  return unit === undefined ? null : { type: unit.type, pattern: unit.pattern };
}
