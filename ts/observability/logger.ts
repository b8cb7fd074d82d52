/**
 * Structured logging: time, level, component, event and fields, with secrets masked.
 *
 * Levels: `error` requires action, `warn` reports degraded service, `info` lifecycle events, and
 * `debug` statements.
 */
import { FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from './log-format.js';

export type { LogLevel } from './log-format.js';
type LogFields = Readonly<Record<string, unknown>>;

const SENSITIVE_NAME = /password|passwd|secret|token|authorization|cookie|credential/i;
/** Matches `PASSWORD 'x'`, `password=x`, `Bearer x` and `code=x` inside strings. */
const SENSITIVE_TEXT = new RegExp(
  '\\b(password|secret|token|code|authorization)(\\s*[=:]\\s*|\\s+)' +
    "('(?:[^']|'')*'|\"[^\"]*\"|[^\\s&,;]+)",
  'gi',
);
const BEARER_TEXT = /\b(bearer|basic)\s+[\w+/=.~-]{4,}/gi;
const MASK = '****';

export interface Logger {
  log(level: LogLevel, event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  debug(event: string, fields?: LogFields): void;
  /** A logger with the same sink and a different component name. */
  child(component: string): Logger;
}

interface LoggerOptions {
  /** Lowest level to log; a function if it can change. */
  readonly level: LogLevel | (() => LogLevel);
  /** The default is JSON. */
  readonly format?: LogFormat;
  readonly component?: string;
  /** Writes one line, including its line end. */
  readonly write: (line: string) => void;
  readonly now?: () => Date;
}

export function createLogger(options: LoggerOptions): Logger {
  const component = options.component ?? 'server';
  const { level: limit } = options;
  const format = FORMATS[options.format ?? 'json'];
  const now = options.now ?? ((): Date => new Date());
  const log = (level: LogLevel, event: string, fields: LogFields = {}): void => {
    const lowest = typeof limit === 'function' ? limit() : limit;
    if (LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(lowest)) {
      const time = now().toISOString();
      options.write(format({ time, level, component, event, fields: safeFields(fields) }));
    }
  };
  return {
    log,
    error: (event, fields) => {
      log('error', event, fields);
    },
    warn: (event, fields) => {
      log('warn', event, fields);
    },
    info: (event, fields) => {
      log('info', event, fields);
    },
    debug: (event, fields) => {
      log('debug', event, fields);
    },
    child: (name) => createLogger({ ...options, component: name }),
  };
}

/** Masks secrets, and converts values that JSON cannot represent. */
function safeFields(fields: LogFields): LogFields {
  const redacted = Object.entries(fields).map(([name, value]) => [
    name,
    SENSITIVE_NAME.test(name) ? MASK : redactValue(value),
  ]);
  return JSON.parse(JSON.stringify(Object.fromEntries(redacted), plainValue)) as LogFields;
}

function redactValue(value: unknown): unknown {
  return typeof value === 'string' ? redactText(value) : value;
}

/** Masks credentials in SQL text or URLs. */
function redactText(text: string): string {
  return text
    .replace(BEARER_TEXT, (_, scheme: string) => `${scheme} ${MASK}`)
    .replace(SENSITIVE_TEXT, (_, word: string, between: string) => `${word}${between}${MASK}`);
}

function plainValue(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    return value.toString();
  }
  if (value instanceof Error) {
    return { name: value.name, message: redactText(value.message), stack: value.stack };
  }
  return value;
}
