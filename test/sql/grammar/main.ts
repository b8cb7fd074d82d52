/**
 * node build/test/sql/grammar/main.js [--update] [ID …]
 *
 * Runs the statements of the grammar table against a server and reports the items that do not run.
 * `--update` removes items that now run from `pending.json`; `npm run generate` then rewrites
 * docs/sql-coverage.md. `--init` rewrites `pending.json`.
 */
import { parseArgs } from 'node:util';

import { readPending, runItems, writePending } from './states.js';

const { values, positionals } = parseArgs({
  options: {
    update: { type: 'boolean', default: false },
    init: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const chosen = new Set(positionals);
const results = await runItems((id) => chosen.size === 0 || chosen.has(id));
const failing = [...results].filter(([, problem]) => problem !== null).map(([id]) => id);
for (const [id, problem] of results) {
  if (problem !== null) {
    process.stdout.write(`${id} ${problem}\n`);
  }
}
const before = readPending();
if (values.init) {
  writePending(failing);
} else if (values.update) {
  writePending(before.filter((id) => !results.has(id) || failing.includes(id)));
}
const unexpected = failing.filter((id) => !before.includes(id)).length;
process.stdout.write(
  `${results.size - failing.length} passed, ${failing.length - unexpected} pending, ` +
    `${unexpected} failed\n`,
);
process.exitCode = unexpected === 0 || values.init ? 0 : 1;
