/** Compares statements with variants that lack one clause. */
import type { TestServer } from '../../golden/server.js';
import { exec } from '../../scenario/statements.js';
import { removals } from './removals.js';

const QUERY = /^\s*(?:\(|select|with|declare|values)/i;

/** Returns the response to a statement as seen by a client. */
async function answer(server: TestServer, text: string): Promise<string> {
  const { columns, dataset, error } = await exec(server, text);
  return JSON.stringify(error ?? [columns, dataset]);
}

/** Returns the clauses that can be removed without changing the answer. */
export async function unchanged(
  server: TestServer,
  texts: readonly string[],
  fields = /./,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const text of texts) {
    const complete = await exec(server, text);
    if (complete.error !== undefined) {
      if (!REFUSED.test(complete.error)) {
        found.push(`${text}\n  ${complete.error}`);
      }
      continue;
    }
    const { columns, dataset } = complete;
    for (const removal of removals(text).filter(({ field }) => fields.test(field))) {
      if ((await answer(server, removal.text)) === JSON.stringify([columns, dataset])) {
        found.push(`${removal.field}: ${text}\n  ${removal.text}`);
      }
    }
  }
  return found;
}

/** A clause that is refused by name and with a position counts as handled. */
const REFUSED = / (?:is|are) not supported(?:$| )/;

/** Returns the clauses that can be removed without changing the bound plan. */
export async function unchangedPlans(
  server: TestServer,
  texts: readonly string[],
): Promise<readonly string[]> {
  const plan = async (text: string): Promise<string> =>
    (await answer(server, `EXPLAIN (BOUND) ${text}`)).replaceAll(/\br\d+\b/g, 'r');
  const found: string[] = [];
  for (const text of texts.filter((one) => QUERY.test(one))) {
    const complete = await plan(text);
    for (const removal of removals(text)) {
      const shown = `${removal.field}: ${text}\n  ${removal.text}`;
      if ((await plan(removal.text)) === complete) {
        found.push(shown);
      }
    }
  }
  return found;
}
