/**
 * One JSON line per event: time, level, component, event and fields. Secrets are masked, control
 * characters are escaped (logs are read in terminals), and long lines are truncated.
 *
 * Levels: `error` requires action, `warn` reports degraded service, `info` lifecycle events, and
 * `debug` statements.
 */

const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
type LogFields = Readonly<Record<string, unknown>>;

const MAX_LINE_LENGTH = 8 * 1024;
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
  readonly level: LogLevel;
  readonly component?: string;
  /** Writes one line, including its line end. */
  readonly write: (line: string) => void;
  readonly now?: () => Date;
}

export function createLogger(options: LoggerOptions): Logger {
  const component = options.component ?? 'server';
  const limit = LOG_LEVELS.indexOf(options.level);
  const now = options.now ?? ((): Date => new Date());
  const log = (level: LogLevel, event: string, fields: LogFields = {}): void => {
    if (LOG_LEVELS.indexOf(level) <= limit) {
      options.write(formatLine(now(), level, component, event, fields));
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

function formatLine(
  time: Date,
  level: LogLevel,
  component: string,
  event: string,
  fields: LogFields,
): string {
  const head = { time: time.toISOString(), level, component, event };
  const line = escapeControls(JSON.stringify({ ...head, ...redactFields(fields) }, plainValue));
  if (line.length <= MAX_LINE_LENGTH) {
    return `${line}\n`;
  }
  const cut = line.slice(0, MAX_LINE_LENGTH);
  return `${JSON.stringify({ ...head, cut })}\n`;
}

function redactFields(fields: LogFields): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      SENSITIVE_NAME.test(name) ? MASK : redactValue(value),
    ]),
  );
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

/** Escapes DEL, the C1 controls and the two Unicode line ends, which JSON does not escape. */
function escapeControls(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
