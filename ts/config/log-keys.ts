/** Configuration keys of the log. */
import { choice, type Key, key, OWN, RELOAD, size, text } from './key.js';
import { parsePositive } from './units.js';

export const LOG_KEYS = {
  logLevel: choice('log.level', 'info', ['error', 'warn', 'info', 'debug'], 'lowest level', {
    ...OWN,
    ...RELOAD,
  }),
  logFormat: choice(
    'log.format',
    'json',
    ['json', 'text', 'journald'],
    'format of log lines: json, text, or journald, which is text with a priority prefix such as ' +
      '<4> and without the time',
    OWN,
  ),
  logFile: text(
    'log.file',
    '',
    'file for log lines, relative to the root; standard error if empty; a reload opens it again',
    OWN,
  ),
  logFileBytes: size(
    'log.file.size',
    '64M',
    'size at which the log file is rotated; 0 disables rotation',
    OWN,
  ),
  logFileCount: key(
    'log.file.count',
    'integer',
    '8',
    parsePositive,
    'log files to keep, including the current one; the oldest are deleted',
    OWN,
  ),
} as const satisfies Readonly<Record<string, Key<unknown>>>;
