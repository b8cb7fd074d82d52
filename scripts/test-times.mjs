// How long the suites and their files take. A run of all tests writes build/test-times.json;
// test/times.json is the record that growth is measured against:
//   node scripts/test-times.mjs      makes the last run the record
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from './steps.mjs';

const RECORD = join(root, 'test', 'times.json');
const LAST_RUN = join(root, 'build', 'test-times.json');
/** Growth that is reported: by this factor, and by so many seconds. */
const GROWN_FACTOR = 1.3;
const GROWN_SECONDS = 10;

/** What a compiled file of tests is called in the record: `browser/follow`. */
export function nameOfTests(file) {
  return file.replace(/^.*[\\/]build[\\/]test[\\/]|\.test\.js$/g, '');
}

/** Seconds by file of one suite, as recorded. */
export function recordedSeconds(suite) {
  return new Map(Object.entries(read(RECORD)[suite]?.files ?? {}));
}

function read(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

/** The seconds of one run: of each suite, and of each of its files. */
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

  /** Writes what was measured beside what an earlier run measured of other suites. */
  save() {
    const all = { ...read(LAST_RUN), ...this.#suites };
    writeFileSync(LAST_RUN, `${JSON.stringify(sorted(all), null, 2)}\n`);
  }

  /** A line for each file that takes longer than the record says. */
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

/** The longest files first. */
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
