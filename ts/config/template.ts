/** Generates a commented `server.conf` from the registry. */
import { environmentNames } from './config.js';
import { ALL_KEYS, type Key } from './registry.js';

const HEAD = [
  'Tidemark server configuration.',
  '',
  'Each commented line shows the default of a key. To change a key, remove the # and edit the',
  'value. Environment variables and --set override this file. Keys marked "reloadable" take effect',
  'on SIGHUP or SELECT reload_config(), all others after a restart.',
];
const MAX_LINE_LENGTH = 100;

/**
 * Returns the file's content: every key with its documentation. Keys in `values` are set, all
 * others are commented out. A name such as `http.password.file` sets the file form of a secret.
 */
export function configurationFile(values: ReadonlyMap<string, string>): string {
  const sections = ALL_KEYS.map((key) => [...about(key), ...settings(key, values)]);
  return [HEAD.map(comment), ...sections].map((lines) => `${lines.join('\n')}\n`).join('\n');
}

function about(key: Key<unknown>): string[] {
  const traits = [
    key.kind,
    environmentNames(key)[0] ?? '',
    ...(key.reloadable ? ['reloadable'] : []),
  ];
  return [...wrap(key.doc), `(${traits.join(', ')})`].map(comment);
}

function settings(key: Key<unknown>, values: ReadonlyMap<string, string>): string[] {
  const names = [key.name, ...key.aliases].flatMap((name) => [name, `${name}.file`]);
  const set = names.flatMap((name) => {
    const value = values.get(name);
    return value === undefined ? [] : [`${name}=${escaped(value)}`];
  });
  return set.length > 0 ? set : [`#${key.name}=${escaped(key.defaultText)}`];
}

/** Escapes the characters that the properties format interprets. */
function escaped(value: string): string {
  return value
    .replaceAll('\\', '\\\\')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replace(/^[ \t\f]/, (space) => `\\${space}`);
}

function comment(line: string): string {
  return line === '' ? '#' : `# ${line}`;
}

function wrap(text: string): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + word.length + 3 > MAX_LINE_LENGTH) {
      lines.push(word);
    } else {
      lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
    }
  }
  return lines;
}
