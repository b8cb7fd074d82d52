// Unclear words that have a better term. `tidy` checks comments, documents and names. It allows no
// unclear words in `ts`, `scripts` and the documents, and no increase elsewhere.
import { extname } from 'node:path';

/** A word, as a lower-case pattern, and its replacement. */
const WORDS = [
  ['whoever|whomever', 'the actor: the client, the caller, a reader'],
  ['nobody|somebody|anybody|everybody', 'the actor: no client, another session, every user'],
  ['told|untold', 'what happens: receives, reports, is notified, logged'],
  ['at the most', 'at most'],
  ['sights?', 'visibility, visible tables'],
  ['witness(?:es)?', 'login monitor, observer'],
  ['momentary', 'volatile'],
  ['steady', 'stable'],
  ['kept answers?', 'cached result'],
  ['open doors', 'insecure listeners'],
];
const PATTERN = new RegExp(`\\b(?:${WORDS.map(([word]) => word).join('|')})\\b`, 'g');
const CODE = new Set(['.rs', '.ts', '.tsx', '.mjs', '.css']);
const DOCUMENTS = new Set(['.md']);
/**
 * Quoted strings, which are not checked: in code they are program output, and error messages are
 * tested where they are created.
 */
const QUOTED = /(?<![\w\\])'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;

/** Returns the line and word of each match in a file. */
export function unclearWords(file, text) {
  const extension = extname(file);
  if (!CODE.has(extension) && !DOCUMENTS.has(extension)) {
    return [];
  }
  const isCode = CODE.has(extension);
  return text.split('\n').flatMap((line, index) => {
    const isComment = /^\s*(\/\/|\/?\*)/.test(line);
    const read = isCode && !isComment ? line.replaceAll(QUOTED, "''") : line;
    return [...plain(read).matchAll(PATTERN)].map(([word]) => ({ line: index + 1, word }));
  });
}

/** Returns the word's replacement. */
export function replacementOf(word) {
  return WORDS.find(([pattern]) => new RegExp(`^(?:${pattern})$`).test(word))?.[1] ?? '';
}

/** Splits names into words: `loginMonitor` and `login-monitor` are two words each. */
function plain(line) {
  return line
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, ' ')
    .replaceAll(/[_-]/g, ' ')
    .toLowerCase();
}
