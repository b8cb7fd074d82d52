/**
 * Calls every function in the registry with each argument of its example, and then all of them, as
 * untyped parameters. The answer must be the same as with literals.
 */
import test from 'ava';

import { parse, type Tree } from '../../ts/sql/index.js';
import { execute } from '../golden/http-client.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, RawClient, type ServerMessage } from '../pgwire/raw-client.js';

interface Example {
  readonly name: string;
  readonly text: string;
  /** Whether the function returns a different value each time. */
  readonly varies: boolean;
}

async function examples(server: TestServer): Promise<readonly Example[]> {
  const { body } = await execute(server.url, 'SELECT name, example, varies FROM functions()');
  const { dataset } = JSON.parse(body.toString('utf8')) as {
    dataset: [name: string, example: string, varies: boolean][];
  };
  const found = new Map<string, Example>();
  for (const [name, example, varies] of dataset) {
    found.set(`${name} ${example}`, { name, text: `SELECT ${example}`, varies });
  }
  return [...found.values()];
}

interface Literal {
  readonly start: number;
  readonly end: number;
  readonly value: string;
}

/** Returns the literal arguments in calls to a function. */
function literals(tree: Tree, name: string): readonly Literal[] {
  const found: Literal[] = [];
  for (const node of tree.nodes) {
    if (node.kind !== 'Call' || node.name.text.toLowerCase() !== name.toLowerCase()) {
      continue;
    }
    for (const id of node.arguments) {
      const value = literalValue(tree, id);
      const span = tree.spans[id];
      if (value !== null && span !== undefined) {
        found.push({ ...span, value });
      }
    }
  }
  return found;
}

function literalValue(tree: Tree, id: number): string | null {
  const node = tree.nodes[id];
  switch (node?.kind) {
    case 'String':
      return node.value;
    case 'Boolean':
      return String(node.value);
    case 'Integer':
    case 'Float':
    case 'Decimal':
      return node.text.replaceAll(/[_lLfFdDmM]/g, '');
    case 'Unary': {
      const value = node.operator === 'Minus' ? literalValue(tree, node.operand) : null;
      return value === null ? null : `-${value}`;
    }
    default:
      return null;
  }
}

/** Returns the result rows as text, or the error. */
function outcome(messages: readonly ServerMessage[]): string {
  const rows = messages.filter(({ type }) => type === 'D');
  const error = messages.find(({ type }) => type === 'E');
  if (error === undefined) {
    return rows.map(({ body }) => body.toString('latin1')).join('|');
  }
  const fields = error.body.toString('utf8').split('\0');
  const field = (key: string): string => fields.find((one) => one.startsWith(key))?.slice(1) ?? '';
  return `error ${field('C')} ${field('M')}`;
}

async function answer(client: RawClient, text: string, values: readonly string[]): Promise<string> {
  client.send(
    clientMessage('P', '', text, [0]),
    clientMessage('D', Buffer.from('S\0')),
    clientMessage('S'),
  );
  const described = await client.until('Z');
  if (described.some(({ type }) => type === 'E')) {
    return `described ${outcome(described)}`;
  }
  const parts = values.flatMap((value) => {
    const bytes = Buffer.from(value);
    return [bytes.length, bytes];
  });
  client.send(
    clientMessage('B', '', '', [0], [values.length], ...parts, [0]),
    clientMessage('E', '', 0),
    clientMessage('S'),
  );
  return outcome(await client.until('Z'));
}

test('function arguments can be parameters', async (t) => {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  try {
    const client = await RawClient.login(Number(server.pg.split(':').at(-1)));
    const different: string[] = [];
    const unanswered: string[] = [];
    let requests = 0;
    const query = async (example: Example, expected: string, taken: readonly Literal[]) => {
      let bound = example.text;
      const values = taken.map(({ value }) => value);
      for (const [index, { start, end }] of [...taken.entries()].reverse()) {
        bound = `${bound.slice(0, start)}$${index + 1}${bound.slice(end)}`;
      }
      const found = await answer(client, bound, values);
      requests += 1;
      t.notRegex(found, /error XX/, bound);
      const isRefused = found.startsWith('described') || found.startsWith('error');
      if (isRefused || (!example.varies && found !== expected)) {
        different.push(`${bound} [${values.join()}]: ${found}, not ${expected}`);
      }
    };
    for (const example of await examples(server)) {
      const expected = await answer(client, example.text, []);
      const found = literals(parse(example.text), example.name);
      if (/^(?:described|error)/.test(expected)) {
        unanswered.push(example.name);
        continue;
      }
      for (const literal of found) {
        await query(example, expected, [literal]);
      }
      if (found.length > 1) {
        await query(example, expected, found);
      }
    }
    client.close();
    t.log(`${requests} arguments`);
    t.true(requests > 300);
    t.deepEqual(different, []);
    t.deepEqual(unanswered, []);
  } finally {
    await server.stop();
  }
});
