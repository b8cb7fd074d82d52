/**
 * npm run requests -- [--messages N] [--seed S]
 *
 * Sends mutated messages from clients that read results over QWP. Each conversation must be
 * answered with well-formed messages and must end, but never with an internal error.
 */
import { runMalformed } from '../qwp/malformed-requests.js';
import { Harness } from './harness.js';

const harness: Harness = new Harness('requests', ['messages']);
const { messages, answers } = await runMalformed(
  harness.number('messages', 1_000_000),
  harness.seed,
).catch((error: unknown) => {
  harness.fail(String(error));
  return { messages: 0, answers: new Map<string, number>() };
});
const kinds = [...answers].map(([kind, count]) => `${kind} ${count}`).join(', ');
harness.say(`${messages} messages; answers: ${kinds}`);
// If conversations ended before they got under way, the run would prove nothing.
const isDeep = (answers.get('end') ?? 0) * 200 > messages;
harness.judge(isDeep ? undefined : 'few messages were answered');
harness.finish();
