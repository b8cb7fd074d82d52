/** Parses values from `server.conf`: sizes, durations and addresses. */

/** Reports an invalid value for a key; the message states what was expected. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};

const DURATION_UNITS_MS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses a size such as `64K`, `2m`, `1gb` or `512` into bytes. */
export function parseSize(text: string): number {
  const match = /^(\d+)\s*([kmgt]?)b?$/i.exec(text.trim());
  if (match === null) {
    throw new ValueError(`expected a size such as 512, 64K or 2M, found '${text}'`);
  }
  const bytes = Number(match[1]) * (SIZE_UNITS[(match[2] ?? '').toLowerCase()] ?? 1);
  return safeInteger(bytes, text);
}

/** Parses a duration such as `500ms`, `2m` or `60s`; a bare number is in units of `bareUnitMs`. */
export function parseDurationMs(text: string, bareUnitMs = 1): number {
  const match = /^(\d+)\s*(us|ms|s|m|h|d)?$/i.exec(text.trim());
  if (match === null) {
    throw new ValueError(`expected a duration such as 500ms, 60s or 5m, found '${text}'`);
  }
  const unit = match[2]?.toLowerCase();
  const unitMs = unit === undefined ? bareUnitMs : (DURATION_UNITS_MS[unit] ?? 1);
  return Math.ceil(safeInteger(Number(match[1]) * unitMs, text));
}

export function parseBoolean(text: string): boolean {
  switch (text.trim().toLowerCase()) {
    case 'true':
      return true;
    case 'false':
      return false;
    default:
      throw new ValueError(`expected true or false, found '${text}'`);
  }
}

export function parseInteger(text: string): number {
  if (!/^-?\d+$/.test(text.trim())) {
    throw new ValueError(`expected a whole number, found '${text}'`);
  }
  return safeInteger(Number(text), text);
}

export function parsePositive(text: string): number {
  const value = parseInteger(text);
  if (value < 1) {
    throw new ValueError(`expected at least 1, found '${text}'`);
  }
  return value;
}

const INT_MAX = 2_147_483_647;

/** Parses a row count, which is limited to the range of an INT column. */
export function parseRowCount(text: string): number {
  const count = parseInteger(text);
  if (count < 0 || count > INT_MAX) {
    throw new ValueError(`expected a number of rows from 0 to ${INT_MAX}, found '${text}'`);
  }
  return count;
}

function safeInteger(value: number, text: string): number {
  if (value > Number.MAX_SAFE_INTEGER) {
    throw new ValueError(`'${text}' is too large`);
  }
  return value;
}

/** An address to listen on. */
export interface Endpoint {
  /** `null` means loopback, in both address families if the machine has them. */
  readonly host: string | null;
  readonly port: number;
}

/** Parses `9000`, `127.0.0.1:9000`, `[::1]:9000` or `0.0.0.0:0`. */
export function parseEndpoint(text: string): Endpoint {
  const match = /^(?:(\[[0-9a-f:.]+\]|[^:[\]\s]+):)?(\d{1,5})$/i.exec(text.trim());
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new ValueError(`expected host:port such as 127.0.0.1:9000, found '${text}'`);
  }
  const host = match[1];
  return { host: host === undefined ? null : host.replace(/^\[|\]$/g, ''), port };
}

/** Whether only this machine can reach `host`. */
export function isLoopback(host: string | null): boolean {
  if (host === null) {
    return true;
  }
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name);
}

/** Splits at commas, and trims the items. */
export function parseList(text: string): readonly string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
