// Durations of the test suites and their files. A run of all tests writes build/test-times.json;
// test/times.json is the baseline for detecting growth:
//
//     node scripts/test-times.mjs      stores the last run as the baseline
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from './steps.mjs';

const RECORD = join(root, 'test', 'times.json');
const LAST_RUN = join(root, 'build', 'test-times.json');
/** A file's growth is reported only if it reaches both this factor and this number of seconds. */
const GROWN_FACTOR = 1.3;
const GROWN_SECONDS = 10;

/** Returns the name under which the baseline lists a compiled test file: `browser/follow`. */
export function nameOfTests(file) {
  return file.replace(/^.*[\\/]build[\\/]test[\\/]|\.test\.js$/g, '');
}

/** Returns one suite's recorded seconds per file. */
export function recordedSeconds(suite) {
  return new Map(Object.entries(read(RECORD)[suite]?.files ?? {}));
}

function read(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

/** Durations measured in one run, in seconds, per suite and file. */
export class TestTimes {
  #suites = {};

  suite(name, seconds) {
    this.#of(name).seconds = Math.round(seconds);
  }

  file(suite, name, seconds) {
    this.#of(suite).files[name] = Math.round(seconds * 10) / 10;
  }

  #of(name) {
    return (this.#suites[name] ??= { files: {} });
  }

  /** Writes the measurements. Suites that did not run keep their earlier measurements. */
  save() {
    const all = { ...read(LAST_RUN), ...this.#suites };
    writeFileSync(LAST_RUN, `${JSON.stringify(sorted(all), null, 2)}\n`);
  }

  /** Returns a line for each file that became slower than the baseline. */
  growth() {
    return Object.entries(this.#suites).flatMap(([suite, { files }]) => {
      const before = recordedSeconds(suite);
      return Object.entries(files)
        .filter(([name, now]) => isGrown(before.get(name), now))
        .map(([name, now]) => `${suite} ${name}: ${before.get(name)} s before, ${now} s now`);
    });
  }
}

function isGrown(before, now) {
  return before !== undefined && now > before * GROWN_FACTOR && now > before + GROWN_SECONDS;
}

/** Returns the files sorted, slowest first. */
function sorted(suites) {
  const bySeconds = ([, one], [, other]) => other - one;
  return Object.fromEntries(
    Object.entries(suites).map(([name, { files, ...rest }]) => [
      name,
      { ...rest, files: Object.fromEntries(Object.entries(files).sort(bySeconds)) },
    ]),
  );
}

if (process.argv[1] === import.meta.filename) {
  copyFileSync(LAST_RUN, RECORD);
  console.log('test/times.json is the last run');
}
