/**
 * User and permission items, run by the administrator over the wire protocol, because its sessions
 * persist.
 */

import { rows, run, ADMIN } from '../../access/harness.js';
import type { TestServer } from '../../golden/server.js';
import type { Item } from './index.js';
import { pgClient } from '../../pg-client.js';

/** Placeholder for the most recently shown token. */
const TOKEN = 'tdm_1';

/** Returns the problem with an item; `null` if it runs. Starts with `tables` and no users. */
export async function runAccessItem(
  server: TestServer,
  tables: readonly string[],
  { statements }: Item,
): Promise<string | null> {
  await run(server, 'DROP ALL TABLES', ...(await leftoverNames(server)), ...tables);
  const [user, password] = ADMIN.split(':');
  const client = pgClient(server.pg, { user, password });
  await client.connect();
  let token = TOKEN;
  let text = '';
  try {
    for (text of statements) {
      const { rows: answer } = await client.query<{ token?: string }>(text.replace(TOKEN, token));
      token = answer[0]?.token ?? token;
    }
    return null;
  } catch (error) {
    return `${text}: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    await client.end();
  }
}

/** Returns statements that drop every principal. */
async function leftoverNames(server: TestServer): Promise<readonly string[]> {
  const kinds = ['USER', 'GROUP', 'SERVICE ACCOUNT'];
  const drops = kinds.map(async (kind) => {
    const found = await rows(server, ADMIN, `SHOW ${kind}S`);
    const names = found.map(([name]) => String(name)).filter((name) => name !== 'admin');
    return names.map((name) => `DROP ${kind} "${name}"`);
  });
  return (await Promise.all(drops)).flat();
}
