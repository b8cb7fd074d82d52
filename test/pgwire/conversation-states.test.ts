/** Each message in each conversation state: the response and the next state. */
import test from 'ava';

import { type ClientMessage, readMessage } from '../../ts/pgwire/protocol/client-messages.js';
import { Conversation } from '../../ts/pgwire/conversation/conversation.js';
import { STEPS } from '../../ts/pgwire/conversation/states.js';
import { SessionHost } from '../../ts/session/index.js';
import { fakeOrSession } from '../fake-statement.js';
import { fakeEngine } from './fake-engine.js';
import { clientMessage } from './raw-client.js';

type Kind = ClientMessage['kind'];

const bindTo = (statement: string, ...values: readonly string[]): ClientMessage => {
  const cells = values.flatMap((value) => [value.length, Buffer.from(value)]);
  const bytes = clientMessage('B', '', statement, [0], [values.length], ...cells, [0]);
  return readMessage({ type: 'B', body: bytes.subarray(5) });
};
const parse = (name: string, text: string): ClientMessage => {
  return { kind: 'parse', name, text, types: [] };
};
const EXECUTE: ClientMessage = { kind: 'execute', portal: '', maxRows: 0 };
const COPY = 'COPY t FROM STDIN';

const MESSAGES: Readonly<Record<Kind, ClientMessage>> = {
  bind: bindTo('r'),
  close: { kind: 'close', what: 'S', name: 'none' },
  copyData: { kind: 'copyData', bytes: Buffer.from('1\t2\n') },
  copyDone: { kind: 'copyDone' },
  copyFail: { kind: 'copyFail', reason: 'no more' },
  describe: { kind: 'describe', what: 'S', name: 'r' },
  execute: EXECUTE,
  flush: { kind: 'flush' },
  functionCall: { kind: 'functionCall' },
  parse: parse('p', 'rows 1'),
  password: { kind: 'password', body: Buffer.alloc(0) },
  query: { kind: 'query', text: 'rows 1' },
  sync: { kind: 'sync' },
  terminate: { kind: 'terminate' },
};

/**
 * A conversation with the statements `r` (a query), `i` (an INSERT) and `c` (a COPY), and its
 * output.
 */
class Driven {
  readonly conversation: Conversation;
  private bytes: Buffer[] = [];

  constructor() {
    const host = new SessionHost({ database: fakeEngine(), parse: fakeOrSession });
    const session = host.open({ name: 'admin', readOnly: false }, true);
    const queue = (sent: Buffer): void => {
      this.bytes.push(sent);
    };
    const send = (sent: Buffer): Promise<void> => {
      queue(sent);
      return Promise.resolve();
    };
    this.conversation = new Conversation(
      session,
      { queue, send, flush: () => undefined },
      { statementsMax: 10 },
    );
  }

  async prepare(...messages: readonly ClientMessage[]): Promise<void> {
    const statements = [parse('r', 'rows 1'), parse('i', 'insert $1'), parse('c', COPY)];
    for (const one of [...statements, ...messages]) {
      await this.conversation.handle(one);
    }
    this.sent();
  }

  /** Returns the types of the messages sent since the last call. */
  sent(): string {
    const all = Buffer.concat(this.bytes);
    this.bytes = [];
    let types = '';
    for (let at = 0; at < all.length; at += 1 + all.readInt32BE(at + 1)) {
      types += String.fromCharCode(all[at] ?? 0);
    }
    return types;
  }

  /** Returns the response to one message, and the next state. */
  async after(kind: Kind): Promise<string> {
    let end = '';
    try {
      end = (await this.conversation.handle(MESSAGES[kind])) ? '' : ' goes';
    } catch {
      end = ' cut off';
    }
    return `${this.sent()} ${this.conversation.state}${end}`.trim();
  }
}

type Ways = Readonly<Record<string, readonly ClientMessage[]>>;

/** Messages that lead to each state. */
const STATES: Ways = {
  ready: [bindTo('r')],
  waiting: [bindTo('i', 'a'), EXECUTE],
  skipping: [{ kind: 'execute', portal: 'none', maxRows: 0 }],
  'copying for a query': [{ kind: 'query', text: `${COPY}; rows 1` }],
  'copying for an Execute': [bindTo('c'), EXECUTE],
};

/** Types of the messages sent, and the next state. */
const EXPECTED: Readonly<Record<string, Readonly<Record<Kind, string>>>> = {
  ready: {
    bind: '2 ready',
    close: '3 ready',
    copyData: 'ready',
    copyDone: 'ready',
    copyFail: 'ready',
    describe: 'tT ready',
    execute: 'DC ready',
    flush: 'ready',
    functionCall: 'E skipping',
    parse: '1 ready',
    password: 'ready cut off',
    query: 'TDCZ ready',
    sync: 'Z ready',
    terminate: 'ready goes',
  },
  waiting: {
    bind: 'waiting',
    close: 'C3 ready',
    copyData: 'C ready',
    copyDone: 'C ready',
    copyFail: 'C ready',
    describe: 'waiting',
    execute: 'CE skipping',
    flush: 'C ready',
    functionCall: 'CE skipping',
    parse: 'C1 ready',
    password: 'C ready cut off',
    query: 'CTDCZ ready',
    sync: 'CZ ready',
    terminate: 'C ready goes',
  },
  skipping: {
    bind: 'skipping',
    close: 'skipping',
    copyData: 'skipping',
    copyDone: 'skipping',
    copyFail: 'skipping',
    describe: 'skipping',
    execute: 'skipping',
    flush: 'skipping',
    functionCall: 'skipping',
    parse: 'skipping',
    password: 'skipping',
    query: 'TDCZ ready',
    sync: 'Z ready',
    terminate: 'skipping goes',
  },
  'copying for a query': {
    bind: 'EZ ready',
    close: 'EZ ready',
    copyData: 'copying',
    copyDone: 'CTDCZ ready',
    copyFail: 'EZ ready',
    describe: 'EZ ready',
    execute: 'EZ ready',
    flush: 'copying',
    functionCall: 'EZ ready',
    parse: 'EZ ready',
    password: 'EZ ready',
    query: 'EZ ready',
    sync: 'copying',
    terminate: 'copying goes',
  },
  'copying for an Execute': {
    bind: 'E skipping',
    close: 'E skipping',
    copyData: 'copying',
    copyDone: 'C ready',
    copyFail: 'E skipping',
    describe: 'E skipping',
    execute: 'E skipping',
    flush: 'copying',
    functionCall: 'E skipping',
    parse: 'E skipping',
    password: 'E skipping',
    query: 'E skipping',
    sync: 'copying',
    terminate: 'copying goes',
  },
};

for (const [name, way] of Object.entries(STATES)) {
  for (const kind of Object.keys(MESSAGES) as Kind[]) {
    test(`${kind} in state "${name}" gets the expected reply`, async (t) => {
      const driven = new Driven();
      await driven.prepare(...way);
      t.true(name.startsWith(driven.conversation.state));
      t.is(await driven.after(kind), EXPECTED[name]?.[kind] ?? 'nothing is expected');
      driven.conversation.close();
    });
  }
}

test('a closed conversation ignores further messages', async (t) => {
  for (const kind of Object.keys(STEPS.closed) as Kind[]) {
    const driven = new Driven();
    await driven.prepare();
    driven.conversation.close();
    t.is(await driven.after(kind), 'closed goes', kind);
  }
});
