/** The calls that the write authorizer makes to its guard when a protocol writes external rows. */
import test from 'ava';

import { DatabaseError, type Guard, WriteAuthorizer } from '../../ts/session/index.js';

const FILLS = { table: 't', creates: false, overwrites: false };
const CREATES = { table: 't', creates: true, overwrites: false };

function watching(denied = false): { guard: Guard; seen: string[] } {
  const seen: string[] = [];
  const guard: Partial<Guard> = {
    importAccesses: (_principal, { table, owner }) => [
      { table, columns: [], permission: `INSERT for ${owner ?? 'nobody'}` },
    ],
    authorise: ({ name }, accesses) => {
      if (denied) {
        throw new DatabaseError({ code: 'AccessDenied', message: 'no' });
      }
      seen.push(`${name} may ${accesses.map(({ permission }) => permission).join()}`);
    },
    creating: async (_principal, targets, run) => {
      seen.push(...targets.map(({ table, owner }) => `${table} made for ${owner ?? 'nobody'}`));
      return await run();
    },
    ran: ({ name }, text, { command }) => seen.push(`${name} ${command} ${text}`),
  };
  return { guard: guard as Guard, seen };
}

test('the write authorizer checks rights, assigns owners and audits writes', async (t) => {
  const { guard, seen } = watching();
  const authorizer = new WriteAuthorizer(guard, {
    principal: { name: 'u', readOnly: false },
    owner: 'o',
  });
  authorizer.authorise(CREATES);
  t.is(await authorizer.commit(CREATES, () => Promise.resolve(7)), 7);
  t.is(await authorizer.commit(FILLS, () => Promise.resolve(8)), 8);
  const more = { ...FILLS, table: 'm', adds: ['c'] };
  t.is(await authorizer.commitAll([FILLS, CREATES, more], () => Promise.resolve(9)), 9);
  authorizer.committed('rows', 'IMPORT');
  t.deepEqual(seen, [
    'u may INSERT for o',
    't made for o',
    't made for o',
    'm made for o',
    'u IMPORT rows',
  ]);
});

test('unauthorized writes are refused; read-only is checked before rights', (t) => {
  const { guard } = watching(true);
  const refused = (readOnly: boolean): unknown =>
    t.throws(() => {
      new WriteAuthorizer(guard, { principal: { name: 'u', readOnly } }).authorise(FILLS);
    });
  t.like(refused(false), { code: 'AccessDenied' });
  t.like(refused(true), { code: 'ReadOnly' });
});

test('without access control, all users may write unless the server is read-only', async (t) => {
  const authorizer = (readOnly: boolean): WriteAuthorizer =>
    new WriteAuthorizer(undefined, { principal: { name: 'u', readOnly } });
  authorizer(false).authorise(CREATES);
  t.is(await authorizer(false).commit(CREATES, () => Promise.resolve(1)), 1);
  t.throws(() => {
    authorizer(true).authorise(CREATES);
  });
});
