/**
 * Parses the Java properties format of `server.conf`: `key=value` lines, comments that start with
 * `#` or `!`, and backslash escapes. A trailing backslash continues the line.
 */

/** Returns keys and values in file order. If a key is repeated, its last value wins. */
export function parseProperties(text: string): Map<string, string> {
  const entries = new Map<string, string>();
  for (const line of logicalLines(text)) {
    const [key, value] = splitLine(line);
    entries.set(key, value);
  }
  return entries;
}

function* logicalLines(text: string): Generator<string> {
  let pending = '';
  for (const raw of text.split(/\r\n|\n|\r/)) {
    const line = raw.trimStart();
    if (pending === '' && (line === '' || line.startsWith('#') || line.startsWith('!'))) {
      continue;
    }
    const joined = pending + line;
    if (endsInOddBackslashes(joined)) {
      pending = joined.slice(0, -1);
      continue;
    }
    pending = '';
    yield joined;
  }
  if (pending !== '') {
    yield pending;
  }
}

function endsInOddBackslashes(line: string): boolean {
  const tail = /\\+$/.exec(line)?.[0] ?? '';
  return tail.length % 2 === 1;
}

function splitLine(line: string): [string, string] {
  const match = /^((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)$/su.exec(line);
  return [unescape(match?.[1] ?? line), unescape(match?.[2] ?? '').trimEnd()];
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f' };

function unescape(text: string): string {
  return text.replace(/\\(?:u([0-9a-f]{4})|(.))/gisu, (_, unicode: string | undefined, char) =>
    unicode === undefined
      ? (ESCAPES[char as string] ?? (char as string))
      : String.fromCharCode(Number.parseInt(unicode, 16)),
  );
}
