/** `docs/time-series.md` as a script: statements, and the answers printed behind them. */
import { readFileSync } from 'node:fs';

import test from 'ava';

import { send } from '../../golden/http-client.js';
import { startTestServer } from '../../golden/server.js';
import { ask } from './random-table.js';

const PAGE = new URL('../../../../docs/time-series.md', import.meta.url);

interface Example {
  readonly sql: string;
  /** Null: the statement answers nothing that is shown. */
  readonly answer: string | null;
}

function examples(page: string): Example[] {
  const found: Example[] = [];
  for (const [, language, text = ''] of page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
    const last = found[found.length - 1];
    if (language === 'sql') {
      found.push({ sql: text.trim(), answer: null });
    } else if (last !== undefined) {
      found[found.length - 1] = { ...last, answer: text };
    }
  }
  return found;
}

test('every example answers what the page says', async (t) => {
  const all = examples(readFileSync(PAGE, 'utf8'));
  t.true(all.filter(({ answer }) => answer !== null).length >= 12);
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  t.teardown(() => server.stop());
  for (const { sql, answer } of all) {
    if (answer === null) {
      await ask(server.url, sql);
      continue;
    }
    const target = `/exp?query=${encodeURIComponent(sql)}`;
    const reply = await send(server.url, { method: 'GET', target, headers: {}, body: null });
    t.is(reply.body.toString('utf8').replaceAll('\r\n', '\n'), answer, sql);
  }
});
