// Style rules that no linter checks, for every file that git would commit:
//
//     line ≤ 100, function ≤ 70 lines, file ≤ 600 lines without tests (warns), ≤ 1000 (fails),
//     not counting lines that consist of a single string, as in a message catalogue,
//     no regular expression that recognizes statement kinds (ts/sql parses statements),
//     at most 25 source files per folder of ts,
//     no unused export and no unused module in TypeScript (scripts/dead-code.mjs),
//     no file named utils, helpers, common or manager, no reminder without an issue number,
//     no machine-specific path, no path in a document that does not exist,
//     no syntax tree field that the binder does not read (scripts/unread-fields.mjs),
//     no unclear word (scripts/words.mjs),
//     and no count in scripts/counts.mjs above its limit.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';

import { counts } from './counts.mjs';
import { deadCode } from './dead-code.mjs';
import { unreadFields } from './unread-fields.mjs';
import { replacementOf } from './words.mjs';

const MAX_LINE_LENGTH = 100;
const MAX_FUNCTION_LINES = 70;
const WARN_FILE = 600;
const MAX_FILE_LINES = 1000;
const MAX_FOLDER_FILES = 25;
const CODE = new Set(['.rs', '.ts', '.tsx', '.mjs', '.css']);
const TEXT = new Set([...CODE, '.md', '.json', '.jsonl', '.toml', '.yml', '.yaml', '.html', '.sh']);
// Recorded or generated files, whose lines are data.
const DATA = new RegExp(
  [
    '^test/golden/(http/|sql/|decided\\.json)',
    '^test/bench/',
    '^package-lock\\.json',
    '^native/index\\.',
    '\\.generated\\.',
  ].join('|'),
);
/** A line of a message catalogue: a name, a string, or both. */
const TEXT_ENTRY = /^\s*(?:\w+:|(?:\w+: )?(?:'[^']*'|`[^`]*`),)$/;
const BANNED_NAMES = /^(utils?|helpers?|common|managers?|misc)$/i;
// Split, so that this file does not match itself.
const MACHINE_PATHS = new RegExp(
  ['/wo' + 'rk/', '/ho' + 'me/\\w', '/ro' + 'ot/', 'C:\\\\Us' + 'ers'].join('|'),
);
/** A path in backticks that lies in a project folder and contains no wildcards. */
const NAMED_PATHS = /`((?:crates|ts|native|scripts|test|docs|\.ci|\.github)\/[\w./-]+)`/g;
const REMINDER = new RegExp('\\b(TO' + 'DO|FIX' + 'ME|X' + 'XX)\\b(?!\\(#\\d+\\))');

const FIRST_WORDS =
  'abort|alter|begin|commit|copy|create|deallocate|declare|delete|discard|drop|explain|fetch|' +
  'grant|insert|listen|move|prepare|release|rename|reset|revoke|rollback|savepoint|select|' +
  'set(?=\\\\)|show|start|truncate|update';
/** A pattern, or a fragment of one, that matches a statement's first keyword. */
const STATEMENT_PATTERN = new RegExp(
  `[/'"\`]\\^(?:\\\\.|[^'"\`/\\\\])*?(?:\\b|\\\\[sb][*+]?)(?:${FIRST_WORDS})\\b`,
  'i',
);
const READS_STATEMENTS = /^ts\/(?!sql\/|console\/test\/).*\.tsx?$/;

const RUST_FUNCTION = /^(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)/;
const root = join(import.meta.dirname, '..');
const problems = [];
const warnings = [];
const texts = new Map();
let statementPatterns = 0;

function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });
}

const files = git('ls-files', '--cached', '--others', '--exclude-standard', '-z')
  .split('\0')
  .filter((file) => file !== '');

for (const file of files) {
  const text = readText(file);
  if (text !== null && !DATA.test(file)) {
    texts.set(file, text);
    checkName(file);
    checkText(file, text);
  }
}

checkFolders();
const dead = deadCode(root, files);
dead.exports.forEach((location) =>
  problems.push(`${location}: exported, and used by no other module`),
);
dead.modules.forEach((file) => problems.push(`${file}: no module imports it`));
for (const field of unreadFields(root)) {
  problems.push(`crates/ast: ${field}: no pattern of the binder names it, so it may be ignored`);
}
checkCounts();

for (const warning of warnings) {
  console.log(`warning: ${warning}`);
}
for (const problem of problems) {
  console.log(problem);
}
console.log(
  `tidy: ${files.length} files, ${warnings.length} warnings, ${problems.length} problems`,
);
process.exitCode = problems.length === 0 ? 0 : 1;

function readText(file) {
  if (!TEXT.has(extname(file))) {
    return null;
  }
  try {
    return readFileSync(join(root, file), 'utf8');
  } catch {
    return null; // Deleted, and not committed yet.
  }
}

function checkName(file) {
  for (const part of file.split('/')) {
    if (BANNED_NAMES.test(basename(part, extname(part)))) {
      problems.push(`${file}: the name says nothing, say what is in it`);
    }
  }
}

/** Prints the counts; a count above its limit is reported as a problem. */
function checkCounts() {
  const path = join(root, 'scripts', 'ceilings.json');
  const ceilings = JSON.parse(readFileSync(path, 'utf8'));
  const { numbers, words } = counts(texts, statementPatterns);
  for (const [name, number] of Object.entries(numbers)) {
    const ceiling = ceilings[name] ?? 0;
    console.log(`count: ${name}: ${number}, at most ${ceiling}`);
    if (number > ceiling) {
      problems.push(`${name}: ${number}, at most ${ceiling} (scripts/ceilings.json)`);
    }
  }
  const ceiling = ceilings['unclear words elsewhere'] ?? 0;
  for (const { file, line, word } of words.length > ceiling ? words : []) {
    problems.push(`${file}:${line}: «${word}», better: ${replacementOf(word)}`);
  }
  if (process.argv.includes('--lower')) {
    const lower = ([name, number]) => [name, Math.min(number, ceilings[name] ?? number)];
    const reached = Object.fromEntries(Object.entries(numbers).map(lower));
    writeFileSync(path, `${JSON.stringify(reached, null, 2)}\n`);
  }
}

function checkFolders() {
  const code = files.filter((file) => /^ts\/.*\.tsx?$/.test(file) && existsSync(join(root, file)));
  for (const folder of new Set(code.map(dirname))) {
    const { length } = code.filter((file) => dirname(file) === folder);
    if (length > MAX_FOLDER_FILES) {
      problems.push(`${folder}: ${length} files in one folder, at most ${MAX_FOLDER_FILES}`);
    }
  }
}

/** Checks that the project paths named in a document exist. */
function checkPaths(location, line) {
  for (const [, path] of line.matchAll(NAMED_PATHS)) {
    if (!existsSync(join(root, path))) {
      problems.push(`${location}: there is no ${path}`);
    }
  }
}

function checkText(file, text) {
  const isCode = CODE.has(extname(file));
  const lines = text.split('\n');
  lines.forEach((line, index) => {
    const location = `${file}:${index + 1}`;
    if (isCode && !TEXT_ENTRY.test(line) && [...line].length > MAX_LINE_LENGTH) {
      problems.push(`${location}: ${[...line].length} characters, at most ${MAX_LINE_LENGTH}`);
    }
    if (isCode && REMINDER.test(line)) {
      problems.push(`${location}: a reminder needs its issue number, (#N)`);
    }
    if (READS_STATEMENTS.test(file) && STATEMENT_PATTERN.test(line)) {
      statementPatterns += 1;
      problems.push(`${location}: a pattern tells a statement's kind, ask its tree (ts/sql)`);
    }
    if (extname(file) === '.md') {
      checkPaths(location, line);
    }
    if (MACHINE_PATHS.test(line)) {
      problems.push(`${location}: a path of one machine`);
    }
  });
  if (isCode) {
    checkSize(file, lines);
  }
  if (extname(file) === '.rs') {
    checkFunctions(file, lines);
  }
}

function checkSize(file, lines) {
  const testsAt = lines.findIndex((line) => line.trim() === '#[cfg(test)]');
  const isTest = /(^|\/)tests?\//.test(file);
  const ownLines = testsAt >= 0 ? lines.slice(0, testsAt) : lines;
  const own = ownLines.filter((line) => !TEXT_ENTRY.test(line)).length;
  if (own > MAX_FILE_LINES && !isTest) {
    problems.push(`${file}: ${own} lines without tests, at most ${MAX_FILE_LINES}`);
  } else if (own > WARN_FILE && !isTest) {
    warnings.push(`${file}: ${own} lines without tests, better at most ${WARN_FILE}`);
  }
}

/**
 * Checks function lengths. Rust code is formatted, so a function starts at a line with `fn` and
 * ends at the first closing brace with the same indentation. ESLint checks functions in TypeScript.
 */
function checkFunctions(file, lines) {
  lines.forEach((line, index) => {
    const match = RUST_FUNCTION.exec(line);
    const name = match?.[2];
    // A line that ends with `;` or `}` contains the whole function.
    if (name === undefined || /[;}]\s*$/.test(line)) {
      return;
    }
    const close = `${match[1]}}`;
    const end = lines.findIndex((other, at) => at >= index && other.startsWith(close));
    const length = end - index + 1;
    if (end >= 0 && length > MAX_FUNCTION_LINES) {
      problems.push(
        `${file}:${index + 1}: function ${name} has ${length} lines, at most ${MAX_FUNCTION_LINES}`,
      );
    }
  });
}
