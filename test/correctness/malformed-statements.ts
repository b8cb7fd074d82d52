/**
 * Sends mutated statements to a complete server. Each must promptly return rows, a success message,
 * or an error that is not internal and has a position within the text. The server must survive.
 *
 *     npm run malformed-statements -- --statements N --seed S
 */
import { setUp } from '../sql/grammar/states.js';
import { internalWord } from '../internal-words.js';
import { generator, malformed } from '../sql/mutations.js';
import { Harness } from '../torture/harness.js';
import { Refusal, Tidemark } from './databases.js';

/**
 * The tables are re-created after this many statements, because mutated statements may drop them.
 */
const STATEMENTS_PER_TABLES = 100;
/**
 * Maximum duration of a statement: its timeout, plus time for a busy machine to notice that the
 * timeout has expired.
 */
const LIMIT_MS = 15_000;

const harness = new Harness('spoiled-statements', ['statements']);
const tidemark = await Tidemark.start(['cairo.commit.mode=nosync', 'log.level=error']);
const below = generator(harness.seed);

async function problemOf(text: string): Promise<string | undefined> {
  const started = performance.now();
  try {
    await tidemark.query(text);
  } catch (error) {
    if (!(error instanceof Refusal)) {
      return `no answer: ${String(error)}`;
    }
    const { status, message, position } = error;
    if (status >= 500 || internalWord(message) !== null) {
      return `${status} ${message}`;
    }
    if (position === undefined || position < 0 || position > text.length) {
      return `position ${position} of ${text.length}: ${message}`;
    }
  }
  const time = performance.now() - started;
  return time > LIMIT_MS ? `took ${time.toFixed(0)} ms` : undefined;
}

const total = harness.number('statements', 1000);
for (let index = 0; index < total; index += 1) {
  if (index % STATEMENTS_PER_TABLES === 0) {
    await setUp(tidemark.server.url);
  }
  const text = malformed(below);
  const problem = await problemOf(text);
  harness.judge(
    problem === undefined ? undefined : `statement ${index}: ${problem}\n  ${JSON.stringify(text)}`,
  );
  if (tidemark.server.process.exitCode !== null) {
    harness.fail(`the server ended: ${tidemark.server.log()}`);
    break;
  }
}
await tidemark.close();
harness.finish();
