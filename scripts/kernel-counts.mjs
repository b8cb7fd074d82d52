// npm run kernel-counts [-- --update]: uses callgrind to count the instructions of each kernel in
// crates/testkit/src/kernels, and compares the counts with scripts/kernel-counts.json. Times are
// unreliable on a shared machine, whereas instruction counts are the same in every run.
//
// Ends with `N passed, N failed, N skipped`.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { answers, must, root, run, targetDirectory } from './steps.mjs';

const BASELINE = join(root, 'scripts', 'kernel-counts.json');
/** Allowed relative difference. Counts vary because libc versions copy memory differently. */
const TOLERANCE = 0.05;
/** The function in crates/testkit/src/bin/kernel-counts.rs whose instructions callgrind counts. */
const COUNTED = 'kernel_counts::counted';

/** Returns why instructions cannot be counted here, or undefined if they can. */
async function obstacle() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    return 'the counts are those of Linux on x86-64';
  }
  // Valgrind does not support AVX-512, so kernels choose AVX2 on every processor that supports it.
  if (!/^flags\b.*\bavx2\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))) {
    return 'this processor has no AVX2, which the counts are of';
  }
  return (await answers('valgrind')) ? undefined : 'valgrind is not installed';
}

/** Returns each entry's instructions per row, in list order. */
async function measure() {
  // Builds the whole workspace, because building a single package would compile its dependencies
  // again.
  const name = 'kernel-counts';
  await must('cargo', ['build', '--locked', '--release', '--workspace', '--bin', name]);
  const folder = mkdtempSync(join(tmpdir(), 'kernel-counts-'));
  try {
    const { code, output } = await run(
      'valgrind',
      [
        '--tool=callgrind',
        `--callgrind-out-file=${join(folder, 'counts')}`,
        `--toggle-collect=${COUNTED}`,
        `--dump-after=${COUNTED}`,
        join(targetDirectory, 'release', name),
      ],
      // With a single arena, allocations that never return memory execute the same instructions in
      // every run.
      { quiet: true, env: { MALLOC_ARENA_MAX: '1' } },
    );
    const entries = [...output.matchAll(/^(\d+)\t(.+)$/gm)];
    const counts = readdirSync(folder)
      .filter((file) => /^counts\.\d+$/.test(file))
      .sort((one, other) => numberOf(one) - numberOf(other))
      .map((file) => totalOf(readFileSync(join(folder, file), 'utf8')));
    if (code !== 0 || counts.length < entries.length || entries.length === 0) {
      const found = `${entries.length} entries, ${counts.length} counts`;
      throw new Error(`${found}:\n${output.slice(-2000)}`);
    }
    return new Map(entries.map(([, rows, entry], at) => [entry, round(counts[at] / Number(rows))]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const numberOf = (file) => Number(file.split('.').at(-1));

/** Returns the instruction count in one dump. */
function totalOf(dump) {
  const total = /^(?:totals|summary): (\d+)/m.exec(dump)?.[1];
  if (total === undefined) {
    throw new Error('a dump of callgrind without its total');
  }
  return Number(total);
}

const round = (value) => Number(value.toPrecision(4));

/** Compares counts per row with the baseline and returns one line per problem. */
export function compare(baseline, counts) {
  const problems = [];
  for (const [name, now] of counts) {
    const before = baseline[name];
    if (before === undefined) {
      problems.push(`${name}: ${now} instructions per row, not in the baseline`);
    } else if (Math.abs(now - before) > TOLERANCE * before) {
      const change = ((now / before - 1) * 100).toFixed(1);
      const word = now > before ? 'more' : 'fewer';
      const share = change.replace('-', '');
      problems.push(`${name}: ${now} instructions per row, ${share} % ${word} than ${before}`);
    }
  }
  const gone = Object.keys(baseline).filter((name) => !counts.has(name));
  return [...problems, ...gone.map((name) => `${name}: in the baseline, but not counted`)];
}

async function main() {
  const why = await obstacle();
  if (why !== undefined) {
    console.log(`SKIPPED kernel-counts: ${why}\n0 passed, 0 failed, 1 skipped`);
    return;
  }
  const counts = await measure();
  if (process.argv.includes('--update')) {
    writeFileSync(BASELINE, `${JSON.stringify(Object.fromEntries(counts), null, 2)}\n`);
    console.log(`${counts.size} counts written`);
    return;
  }
  const problems = compare(JSON.parse(readFileSync(BASELINE, 'utf8')), counts);
  for (const problem of problems) {
    console.log(problem);
  }
  if (problems.length > 0) {
    console.log('where that is meant: npm run kernel-counts -- --update, and commit the file');
    process.exitCode = 1;
  }
  console.log(`${counts.size - problems.length} passed, ${problems.length} failed, 0 skipped`);
}

if (process.argv[1] === import.meta.filename) {
  await main();
}
