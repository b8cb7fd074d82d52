/** The settings that a client can change, and the values that each of them accepts. */
import { ISOLATION_LEVELS } from '../../session/index.js';
import { ProtocolError } from '../protocol/protocol-error.js';

interface Setting {
  /** The name in the spelling of ParameterStatus. */
  readonly name: string;
  readonly initial: string;
  /** Returns the value as SHOW displays it; throws if it is invalid. */
  readonly shown: (value: string) => string;
  /** Whether the client receives a ParameterStatus when the value changes. */
  readonly isReported?: boolean;
}

/** Maximum length of `application_name`; longer names are cut, as in PostgreSQL. */
const MAX_NAME_BYTES = 63;

const LIST: readonly Setting[] = [
  { name: 'statement_timeout', initial: '0', shown: timeout },
  { name: 'timestamp_precision', initial: 'us', shown: precision },
  { name: 'client_min_messages', initial: 'notice', shown: messageLevel },
  { name: 'application_name', initial: '', shown: applicationName, isReported: true },
  { name: 'search_path', initial: '"$user", public', shown: (value) => value },
  {
    name: 'default_transaction_read_only',
    initial: 'off',
    shown: (value) => flag('default_transaction_read_only', value),
    isReported: true,
  },
  {
    name: 'default_transaction_deferrable',
    initial: 'off',
    shown: (value) => flag('default_transaction_deferrable', value),
  },
];

/** Settings that are stored, keyed by name in lower case. Clients also set many others. */
export const SETTINGS: ReadonlyMap<string, Setting> = new Map(
  LIST.map((setting) => [setting.name, setting]),
);

/** Settings of the current transaction block, until its end. */
export type BlockSetting = 'transaction_read_only' | 'transaction_deferrable';

export function isBlockSetting(name: string): name is BlockSetting {
  return name === 'transaction_read_only' || name === 'transaction_deferrable';
}

/** Throws unless the value is one of PostgreSQL's isolation levels; the level has no effect. */
export function checkIsolation(name: string, value: string): void {
  if (!ISOLATION_LEVELS.some((level) => level === value.toLowerCase())) {
    throw invalid(name, value, `available values: ${ISOLATION_LEVELS.join(', ')}`);
  }
}

const ON: ReadonlySet<string> = new Set(['on', 'true', 'tru', 'tr', 't', 'yes', 'ye', 'y', '1']);
const OFF: ReadonlySet<string> = new Set([
  ...['off', 'of', 'false', 'fals', 'fal', 'fa', 'f'],
  ...['no', 'n', '0'],
]);

/** Parses a BOOLEAN setting into `on` or `off`. */
export function flag(name: string, value: string): 'on' | 'off' {
  const word = value.trim().toLowerCase();
  if (!ON.has(word) && !OFF.has(word)) {
    throw new ProtocolError('22023', `parameter "${name}" requires a Boolean value`);
  }
  return ON.has(word) ? 'on' : 'off';
}

const UNIT_MS = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 } as const;

/** Returns a time limit in its largest whole unit: `700ms`, `30s`, `2min`. */
function timeout(value: string): string {
  const milliseconds = millisecondsOf(value);
  for (const unit of ['h', 'min', 's', 'ms'] as const) {
    if (milliseconds > 0 && milliseconds % UNIT_MS[unit] === 0) {
      return `${milliseconds / UNIT_MS[unit]}${unit}`;
    }
  }
  return '0';
}

/** Parses `statement_timeout` into milliseconds, with or without a unit. */
export function millisecondsOf(value: string): number {
  const match = /^(\d{1,9})\s*(ms|s|min|h)?$/.exec(value.trim());
  if (match === null) {
    throw invalid('statement_timeout', value);
  }
  return Number(match[1]) * UNIT_MS[(match[2] ?? 'ms') as keyof typeof UNIT_MS];
}

function precision(value: string): string {
  if (value !== 'us' && value !== 'ns') {
    throw invalid('timestamp_precision', value, 'expected us or ns');
  }
  return value;
}

/** Values of `client_min_messages` at which the client receives notices, most verbose first. */
const SHOWING: ReadonlySet<string> = new Set(
  'debug5 debug4 debug3 debug2 debug1 debug log info notice'.split(' '),
);
const SILENT: ReadonlySet<string> = new Set(['warning', 'error', 'fatal', 'panic']);

function messageLevel(value: string): string {
  const level = value.trim().toLowerCase();
  if (!SHOWING.has(level) && !SILENT.has(level)) {
    throw invalid('client_min_messages', value);
  }
  return SHOWING.has(level) ? 'notice' : 'warning';
}

/** The name, cut to PostgreSQL's length, with characters other than printable ASCII replaced. */
function applicationName(value: string): string {
  const bytes = Buffer.from(value).subarray(0, MAX_NAME_BYTES);
  return bytes.toString('latin1').replaceAll(/[^\x20-\x7e]/g, '?');
}

function invalid(name: string, value: string, hint?: string): ProtocolError {
  const message = `invalid value for parameter "${name}": "${value}"`;
  return new ProtocolError('22023', hint === undefined ? message : `${message}: ${hint}`);
}
