// npm run addon-size [-- FILE]: prints the code size of each crate in the addon, the largest first.
// Generic code counts for the crate that defines it. FILE is a library with symbols, by default the
// one that cargo built.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import { targetDirectory } from './steps.mjs';

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

const library = process.argv[2] ?? join(targetDirectory, 'release', 'libtidemark_native.so');
const all = sizes(library);
const total = all.reduce((sum, [, bytes]) => sum + bytes, 0);
const rest = all.slice(SHOWN).reduce((sum, [, bytes]) => sum + bytes, 0);
for (const [name, bytes] of [...all.slice(0, SHOWN), ['all others', rest], ['total', total]]) {
  console.log(`${name.padEnd(40)} ${(bytes / KIB).toFixed(0).padStart(8)} KiB`);
}
