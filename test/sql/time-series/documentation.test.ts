/** Pages of examples as scripts: statements, and the answers printed behind them. */
import { readFileSync } from 'node:fs';

import test from 'ava';

import { send } from '../../golden/http-client.js';
import { startTestServer } from '../../golden/server.js';
import { until } from '../../until.js';
import { ask } from './random-table.js';

const PAGES = ['time-series.md', 'materialized-views.md', 'live-views.md', 'storage-policies.md'];

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

for (const page of PAGES) {
  test(`every example of ${page} answers what the page says`, async (t) => {
    const path = new URL(`../../../../docs/${page}`, import.meta.url);
    const all = examples(readFileSync(path, 'utf8'));
    t.true(all.filter(({ answer }) => answer !== null).length >= 3);
    const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
    t.teardown(() => server.stop());
    for (const { sql, answer } of all) {
      if (answer === null) {
        await ask(server.url, sql);
        continue;
      }
      const target = `/exp?query=${encodeURIComponent(sql)}`;
      let text = '';
      const answers = async (): Promise<boolean> => {
        const reply = await send(server.url, { method: 'GET', target, headers: {}, body: null });
        text = reply.body.toString('utf8').replaceAll('\r\n', '\n');
        return text === answer;
      };
      // What such a view shows follows its base.
      if (page !== 'time-series.md') {
        await until(answers, `the answer of ${sql}`);
      }
      await answers();
      t.is(text, answer, sql);
    }
  });
}
