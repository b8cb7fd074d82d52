/** The addon in worker threads, which may load it before the main thread does. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import test from 'ava';

const LIBRARY = new URL('../../ts/index.js', import.meta.url).href;

/**
 * Returns a program that loads the library in `workers` workers, one after another, and then uses
 * it on the main thread.
 */
function programOf(root: string, workers: number): string {
  return `
    import { Worker } from 'node:worker_threads';
    import { once } from 'node:events';
    for (let number = 0; number < ${workers}; number += 1) {
      const worker = new Worker("import('${LIBRARY}')", { eval: true });
      const [code] = await once(worker, 'exit');
      if (code !== 0) throw new Error('the worker ended with ' + code);
    }
    const { open } = await import('${LIBRARY}');
    const database = await open({ root: '${root}' });
    const rows = await database.query('SELECT x FROM long_sequence(200000)');
    await database.close();
    console.log(rows.length);`;
}

// A reused thread ID made the process crash, and IDs are usually reused immediately.
for (const workers of [1, 5]) {
  test(`the library works after ${workers} workers have loaded it and exited`, async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'tidemark-worker-'));
    t.teardown(() => rm(root, { recursive: true, force: true }));
    const program = programOf(root, workers);
    const run = await promisify(execFile)(process.execPath, [
      '--input-type=module',
      '--eval',
      program,
    ]);
    t.is(run.stdout.trim(), '200000');
  });
}
