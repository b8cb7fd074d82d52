/** `npm run access-speed`: measures the cost of the permission check per statement. */
import { authorise } from '../../ts/access/authorise.js';
import { grant, NO_GRANTS } from '../../ts/access/model.js';
import type { Rights } from '../../ts/access/store.js';

const ROUNDS = 1_000_000;
const TABLES = 1000;
const GROUPS = 8;

/** A member of several groups, each with grants on many tables. */
function member(): Rights {
  const sets = Array.from({ length: GROUPS }, (_, group) => {
    let grants = NO_GRANTS;
    for (let table = 0; table < TABLES; table += 1) {
      if (table % GROUPS === group) {
        grants = grant(grants, 'SELECT', { table: `table_${table}` }, false);
      }
    }
    return grants;
  });
  return { all: false, sets, accounts: new Map() };
}

const rights = member();
const accesses = Array.from({ length: TABLES }, (_, table) => [
  { table: `table_${table}`, columns: ['ts', 'price', 'amount'], permission: 'SELECT' },
]);

function measure(): number {
  const started = process.hrtime.bigint();
  for (let round = 0; round < ROUNDS; round += 1) {
    authorise(rights, accesses[round % TABLES] ?? [], () => rights);
  }
  return Number(process.hrtime.bigint() - started) / ROUNDS;
}

measure();
const nanos = measure();
process.stdout.write(
  `check of one table, ${GROUPS} groups, ${TABLES} tables: ${nanos.toFixed(0)} ns\n`,
);
process.exitCode = nanos <= 5000 ? 0 : 1;
