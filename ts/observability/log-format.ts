/**
 * Log line formats. Each event becomes one line: JSON, text for people, or text for journald, which
 * adds the time itself and reads the priority from a prefix such as `<4>`. Control characters are
 * escaped, because logs are read in terminals, and long lines are truncated.
 */

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogFormat = 'json' | 'text' | 'journald';

/** A log event; its fields contain no secrets. */
interface LogEvent {
  readonly time: string;
  readonly level: LogLevel;
  readonly component: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const MAX_LINE_LENGTH = 8 * 1024;
/** Priorities of syslog(3), as documented in sd-daemon(3). */
const PRIORITIES: Readonly<Record<LogLevel, number>> = { error: 3, warn: 4, info: 6, debug: 7 };
/** Matches values that need no quotes in a text line. */
const PLAIN = /^[\w.:/@%+,*[\]()-]+$/;

/** Formats an event as one line, including its line end. */
export const FORMATS: Readonly<Record<LogFormat, (event: LogEvent) => string>> = {
  json: jsonLine,
  text: (event) => textLine(`${event.time} ${event.level.padEnd(5)}`, event),
  journald: (event) => textLine(`<${PRIORITIES[event.level]}>`, event),
};

function jsonLine({ fields, ...head }: LogEvent): string {
  const line = escapeControls(JSON.stringify({ ...head, ...fields }));
  if (line.length <= MAX_LINE_LENGTH) {
    return `${line}\n`;
  }
  return `${JSON.stringify({ ...head, cut: line.slice(0, MAX_LINE_LENGTH) })}\n`;
}

function textLine(start: string, { component, event, fields }: LogEvent): string {
  const separator = start.endsWith('>') ? '' : ' ';
  const values = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${textValue(value)}`);
  const line = escapeControls(`${start}${separator}${component}: ${event}${values.join('')}`);
  return line.length <= MAX_LINE_LENGTH ? `${line}\n` : `${line.slice(0, MAX_LINE_LENGTH)} ...\n`;
}

function textValue(value: unknown): string {
  return typeof value === 'string' && PLAIN.test(value) ? value : JSON.stringify(value);
}

/** Escapes DEL, the C1 controls and the two Unicode line ends, which JSON does not escape. */
function escapeControls(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
