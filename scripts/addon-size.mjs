// npm run addon-size: links the addon with its symbols, and prints the size of each crate's code
// and data, the largest first. Generic code counts for the crate that defines it.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { must, targetDirectory } from './steps.mjs';

const SHOWN = 25;
const KIB = 1024;

/** Returns the crate of a symbol, or its kind if it has none. */
function crateOf(symbol) {
  const [, length, rest] = /^_ZN(\d+)(.*)$/.exec(symbol) ?? [];
  if (length === undefined) {
    return /^_R/.test(symbol) ? 'Rust, other names' : 'C and assembler';
  }
  const first = rest.slice(0, Number(length));
  // An implementation begins with its type, `_$LT$crate..path..Type$u20$as$u20$…`.
  const type = first.replace(/^_?(?:\$[A-Za-z0-9]+\$)+(?:mut\$u20\$|const\$u20\$)?/, '');
  return /^[a-z][a-z0-9_]*(?=$|\.)/.exec(type)?.[0] ?? 'types of the language';
}

/** Returns the bytes of each crate, the largest first. */
function sizes(file) {
  const options = { encoding: 'utf8', maxBuffer: 1 << 30 };
  const bytes = new Map();
  for (const line of execFileSync('nm', ['-S', '--defined-only', file], options).split('\n')) {
    const [, size, , symbol] = line.split(' ');
    if (symbol !== undefined) {
      const crate = crateOf(symbol);
      bytes.set(crate, (bytes.get(crate) ?? 0) + parseInt(size, 16));
    }
  }
  return [...bytes].sort(([, one], [, other]) => other - one);
}

const build = ['build', '--locked', '--release', '--quiet', '-p', 'tidemark-native'];
await must('cargo', build, { env: { TIDEMARK_SYMBOLS: '1' } });
const all = sizes(join(targetDirectory, 'release', 'libtidemark_native.so'));
const total = all.reduce((sum, [, bytes]) => sum + bytes, 0);
const rest = all.slice(SHOWN).reduce((sum, [, bytes]) => sum + bytes, 0);
for (const [name, bytes] of [...all.slice(0, SHOWN), ['all others', rest], ['total', total]]) {
  console.log(`${name.padEnd(40)} ${(bytes / KIB).toFixed(0).padStart(8)} KiB`);
}
