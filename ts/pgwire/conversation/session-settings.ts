/** Settings that a client can change for later statements: with SET, or in `options` at startup. */
import { ProtocolError } from '../protocol/protocol-error.js';

interface Values {
  /** Overrides the server's timeout; if `undefined`, the server's timeout applies. */
  readonly timeoutMs: number | undefined;
  /**
   * Whether TIMESTAMP_NS is sent with nine fractional digits; most drivers fail on more than six.
   */
  readonly nanoseconds: boolean;
  /** Whether to send notices. */
  readonly notices: boolean;
}

/** Matches `-c name=value` and `--name=value` in the startup options. */
const OPTION = /(?:^|\s)(?:-c\s*|--)(\w+)=(\S+)/g;

const DEFAULTS: Values = { timeoutMs: undefined, nanoseconds: false, notices: true };

interface Setting {
  readonly key: keyof Values;
  readonly read: (value: string) => Values[keyof Values];
  /** The value as displayed by SHOW. */
  readonly shown: (values: Values) => string;
}

/** Settings that have an effect, keyed by name. Clients also set many others. */
const SETTINGS: ReadonlyMap<string, Setting> = new Map<string, Setting>([
  [
    'statement_timeout',
    {
      key: 'timeoutMs',
      read: timeout,
      shown: ({ timeoutMs }) => (timeoutMs === undefined ? '0' : `${timeoutMs}ms`),
    },
  ],
  [
    'timestamp_precision',
    {
      key: 'nanoseconds',
      read: isNanoseconds,
      shown: ({ nanoseconds }) => (nanoseconds ? 'ns' : 'us'),
    },
  ],
  [
    'client_min_messages',
    {
      key: 'notices',
      read: showsNotices,
      shown: ({ notices }) => (notices ? 'notice' : 'warning'),
    },
  ],
]);

export class SessionSettings {
  private readonly first: Values = DEFAULTS;
  private values: Values = DEFAULTS;

  /**
   * `options` is the string that the client sent: `-c statement_timeout=50 -c
   * timestamp_precision=ns`.
   */
  constructor(options = '') {
    for (const [, name = '', value = ''] of options.matchAll(OPTION)) {
      this.set(name, value);
    }
    this.first = this.values;
  }

  get timeoutMs(): number | undefined {
    return this.values.timeoutMs;
  }

  get nanoseconds(): boolean {
    return this.values.nanoseconds;
  }

  get notices(): boolean {
    return this.values.notices;
  }

  set(name: string, value: string): void {
    const setting = SETTINGS.get(name);
    if (value.toUpperCase() === 'DEFAULT') {
      this.reset(name);
    } else if (setting !== undefined) {
      this.values = { ...this.values, [setting.key]: setting.read(value) };
    }
  }

  /**
   * Returns a query for the value of a setting that this class stores; `null` for any other
   * setting.
   */
  valueQuery(name: string): string | null {
    const setting = SETTINGS.get(name);
    return setting === undefined ? null : `SELECT '${setting.shown(this.values)}' AS "${name}"`;
  }

  /** Restores a setting's initial value; without a name, restores all settings. */
  reset(name?: string): void {
    if (name === undefined) {
      this.values = this.first;
      return;
    }
    const key = SETTINGS.get(name)?.key;
    if (key !== undefined) {
      this.values = { ...this.values, [key]: this.first[key] };
    }
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 };

/** Parses `statement_timeout` into milliseconds, with or without a unit. */
function timeout(value: string): number | undefined {
  const match = /^(\d{1,9})\s*(ms|s|min|h)?$/.exec(value.trim());
  if (match === null) {
    throw invalid('statement_timeout', value);
  }
  const milliseconds = Number(match[1]) * (UNIT_MS[match[2] ?? 'ms'] ?? 1);
  // In PostgreSQL, zero disables the timeout. Here, zero means that only the server's timeout
  // applies.
  return milliseconds === 0 ? undefined : milliseconds;
}

function isNanoseconds(value: string): boolean {
  if (value !== 'us' && value !== 'ns') {
    throw invalid('timestamp_precision', value, 'expected us or ns');
  }
  return value === 'ns';
}

/** Values of `client_min_messages` at which the client receives notices, most verbose first. */
const SHOWING: ReadonlySet<string> = new Set(
  'debug5 debug4 debug3 debug2 debug1 debug log info notice'.split(' '),
);
const SILENT: ReadonlySet<string> = new Set(['warning', 'error', 'fatal', 'panic']);

function showsNotices(value: string): boolean {
  const level = value.trim().toLowerCase();
  if (!SHOWING.has(level) && !SILENT.has(level)) {
    throw invalid('client_min_messages', value);
  }
  return SHOWING.has(level);
}

function invalid(name: string, value: string, hint?: string): ProtocolError {
  const message = `invalid value for parameter "${name}": "${value}"`;
  return new ProtocolError('22023', hint === undefined ? message : `${message}: ${hint}`);
}
