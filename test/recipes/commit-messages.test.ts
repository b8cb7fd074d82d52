/** Tests for the commit message check. */
import test from 'ava';

const ROOT = new URL('../../../', import.meta.url);
interface Script {
  readonly faultsOf: (message: string) => string[];
}
const { faultsOf } = (await import(new URL('scripts/commit-messages.mjs', ROOT).href)) as Script;

test('an imperative subject with a body is accepted', (t) => {
  t.deepEqual(faultsOf('Embed the icons\n\nThe page then needs one request less.\n'), []);
});

for (const [message, fault] of [
  ['Added a page\n\nUsers need it.', /imperative, not "Added"/],
  ['a page\n\nUsers need it.', /imperative, not "a"/],
  ['Add a page.\n\nUsers need it.', /punctuation/],
  [`Add ${'a'.repeat(80)}\n\nUsers need it.`, /84 characters, at most 72/],
  ['Add a page', /a body that says why/],
  ['Add a page\nUsers need it.', /a body that says why/],
] as const) {
  test(`a message is refused: ${JSON.stringify(message.slice(0, 30))}`, (t) => {
    const faults = faultsOf(message);
    t.is(faults.length, 1);
    t.regex(faults.join(), fault);
  });
}
