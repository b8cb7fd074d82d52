import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';

import test from 'ava';
import fc from 'fast-check';

import { NameSalts, scramVerifier } from '../../ts/auth/index.js';
import {
  type ClientMessage,
  readMessage,
  readStartup,
} from '../../ts/pgwire/protocol/client-messages.js';
import { FrameReader } from '../../ts/pgwire/protocol/frames.js';
import { ProtocolError } from '../../ts/pgwire/protocol/protocol-error.js';
import { ScramExchange } from '../../ts/pgwire/login/scram.js';
import * as reply from '../../ts/pgwire/protocol/server-messages.js';
import { SessionSettings } from '../../ts/pgwire/statements/session-settings.js';
import { describeField, oidOf } from '../../ts/pgwire/protocol/type-oids.js';
import { clientMessage, shown, startup } from './raw-client.js';
import { suiteSeed } from '../seed.js';

const seed = suiteSeed();

const LIMIT = 1_000_000;

/** Decodes all frames from bytes that arrive in fragments. */
function frames(bytes: Buffer, chunks: readonly number[]): { type: string; body: string }[] {
  const reader = new FrameReader();
  const all: { type: string; body: string }[] = [];
  let at = 0;
  for (const size of [...chunks, bytes.length]) {
    reader.push(bytes.subarray(at, at + size));
    at += size;
    for (let frame = reader.next(LIMIT); frame !== null; frame = reader.next(LIMIT)) {
      all.push({ type: frame.type, body: frame.body.toString('hex') });
    }
  }
  return all;
}

test('frames are decoded correctly however their bytes are split', (t) => {
  const message = fc.tuple(fc.constantFrom('Q', 'P', 'B', 'S'), fc.uint8Array({ maxLength: 60 }));
  const property = fc.property(
    fc.array(message, { maxLength: 8 }),
    fc.array(fc.nat(20), { maxLength: 20 }),
    (messages, chunks) => {
      const bytes = Buffer.concat(
        messages.map(([type, body]) => clientMessage(type, Buffer.from(body))),
      );
      const expected = messages.map(([type, body]) => {
        return { type, body: Buffer.from(body).toString('hex') };
      });
      t.deepEqual(frames(bytes, chunks), expected);
    },
  );
  fc.assert(property, { seed, numRuns: 300 });
});

test('message lengths are checked before the message bytes arrive', (t) => {
  for (const length of [-1, 0, 3, LIMIT + 1, 0x7fff_ffff]) {
    const reader = new FrameReader();
    const header = Buffer.alloc(5);
    header.write('Q');
    header.writeInt32BE(length, 1);
    reader.push(header);
    t.throws(() => reader.next(LIMIT), { instanceOf: ProtocolError }, String(length));
  }
  for (const length of [7, 10_001, -5]) {
    const reader = new FrameReader();
    const header = Buffer.alloc(4);
    header.writeInt32BE(length);
    reader.push(header);
    t.throws(() => reader.nextStartup(), { instanceOf: ProtocolError }, String(length));
  }
});

test('random message bodies are decoded or refused', (t) => {
  const types = fc.constantFrom('Q', 'P', 'B', 'D', 'C', 'E', 'S', 'H', 'p', 'F', 'd', 'x', '\0');
  const property = fc.property(types, fc.uint8Array({ maxLength: 80 }), (type, bytes) => {
    for (const read of [readMessage, readStartup]) {
      try {
        read({ type, body: Buffer.from(bytes) });
      } catch (error) {
        if (!(error instanceof ProtocolError)) {
          throw error;
        }
      }
    }
  });
  fc.assert(property, { seed, numRuns: 3_000 });
  t.pass();
});

test('client messages are decoded', (t) => {
  const read = (bytes: Buffer): ClientMessage | null => {
    const reader = new FrameReader();
    reader.push(bytes);
    const frame = reader.next(LIMIT);
    return frame === null ? null : readMessage(frame);
  };
  t.deepEqual(read(clientMessage('P', 's', 'select $1', [1], 23)), {
    kind: 'parse',
    name: 's',
    text: 'select $1',
    types: [23],
  });
  const bind = clientMessage('B', '', 's', [1], [1], [2], 2, Buffer.from('ab'), -1, [1], [0]);
  t.deepEqual(shown(read(bind)), {
    kind: 'bind',
    portal: '',
    statement: 's',
    parameterFormats: [1],
    parameters: [Buffer.from('ab'), null],
    resultFormats: [0],
  });
  const long = 'é'.repeat(100);
  const texts = ['ab', long, 'ü'].flatMap((text) => [Buffer.byteLength(text), Buffer.from(text)]);
  const mixed = clientMessage('B', '', 's', [4], [0], [0], [0], [1], [4], ...texts, 1, 'x', [0]);
  t.throws(() => read(mixed), { message: /format/ });
  const fitting = [...texts, 1, Buffer.from('x')];
  const both = clientMessage('B', '', 's', [4], [0], [0], [0], [1], [4], ...fitting, [0]);
  t.like(shown(read(both)), { parameters: ['ab', long, 'ü', Buffer.from('x')] });
  t.deepEqual(read(clientMessage('E', 'p', 7)), { kind: 'execute', portal: 'p', maxRows: 7 });
  t.throws(() => read(clientMessage('Q', Buffer.from([0xff, 0]))), { message: /UTF8/ });
  t.throws(() => read(clientMessage('S', Buffer.from([1]))), { message: /message format/ });
});

test('server messages are encoded to the expected bytes', (t) => {
  const hex = (bytes: Buffer): string => bytes.toString('hex');
  t.is(hex(reply.authenticationOk()), '520000000800000000');
  t.is(hex(reply.readyForQuery('T')), '5a0000000554');
  t.is(hex(reply.commandComplete('SELECT 3')), '430000000d53454c454354203300');
  t.is(hex(reply.parameterDescription([23, 1043])), '740000000e00020000001700000413');
  t.is(hex(reply.authenticationSasl(['A'])), '520000000b0000000a410000');
  const field = describeField({ name: 'c', type: 'CHAR', dimensions: 0 }, 0, 0);
  const expected =
    '540000001a0001' + '6300' + '00000000' + '0001' + '00000412' + 'ffff' + '00000005';
  t.is(hex(reply.rowDescription([field])), `${expected}0000`);
  const modifiers = ['DECIMAL(18,3)', 'DECIMAL(76,38)', 'VARCHAR', 'DECIMAL'].map(
    (type) => describeField({ name: 'n', type, dimensions: 0 }, 0, 0).modifier,
  );
  t.deepEqual(modifiers, [1_179_655, 4_980_778, -1, -1]);
  const source = { table: 16_400, number: 7, modifier: 54 };
  const kept = describeField({ name: 'n', type: 'VARCHAR', dimensions: 0, source }, 0, 0);
  t.like(kept, { table: 16_400, column: 7, modifier: 54 });
  const error = { severity: 'ERROR', sqlState: '42P01', message: 'no', position: 3 } as const;
  t.is(
    hex(reply.errorResponse(error)),
    '45' + '00000021' + hex(Buffer.from('SERROR\0VERROR\0C42P01\0Mno\0P3\0\0')),
  );
});

test('types have the same OIDs as in QuestDB', (t) => {
  const cases: [string, number][] = [
    ['BOOLEAN', 16],
    ['BYTE', 21],
    ['SHORT', 21],
    ['CHAR', 1042],
    ['INT', 23],
    ['LONG', 20],
    ['FLOAT', 700],
    ['DOUBLE', 701],
    ['DATE', 1114],
    ['TIMESTAMP', 1114],
    ['TIMESTAMP_NS', 1114],
    ['SYMBOL', 1043],
    ['VARCHAR', 1043],
    ['STRING', 1043],
    ['UUID', 2950],
    ['IPv4', 1043],
    ['GEOHASH(5c)', 1043],
    ['BINARY', 17],
    ['ARRAY', 1022],
    ['DOUBLE[][]', 1022],
    ['DECIMAL(10,2)', 1700],
    ['LONG256', 1043],
    ['INTERVAL', 1043],
  ];
  for (const [type, oid] of cases) {
    t.is(oidOf(type), oid, type);
  }
});

test('SCRAM follows the example of RFC 7677', async (t) => {
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');
  const verifier = await scramVerifier('pencil', salt, 4_096);
  const exchange = new ScramExchange(verifier, null, '%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0');
  t.is(
    exchange.first('n,,n=user,r=rOprNGfwEbeRWgbNEkqO'),
    'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096',
  );
  const proof = 'dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=';
  const last = `c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=${proof}`;
  t.is(exchange.final(last), 'v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=');
  t.is(exchange.final(last.replace('dHzb', 'dHzc')), null);
  t.throws(() => exchange.first('nonsense'), { instanceOf: ProtocolError });
});

/**
 * The remainder of the RFC's exchange. The certificate digest is inserted where the client sends
 * it.
 */
function boundExchange(chosen: boolean): {
  first(header: string): string;
  exchange: ScramExchange;
} {
  const verifier = new NameSalts().mock('joe');
  const channel = { endPoint: Buffer.from('digest of the certificate'), chosen };
  const exchange = new ScramExchange(verifier, channel, 'theirs');
  return { exchange, first: (header) => exchange.first(`${header}n=joe,r=mine`) };
}

test('SCRAM with channel binding verifies the certificate and refuses downgrades', (t) => {
  t.regex(boundExchange(true).first('p=tls-server-end-point,,'), /^r=minetheirs,/);
  t.throws(() => boundExchange(true).first('p=tls-unique,,'), { message: /channel-binding type/ });
  t.throws(() => boundExchange(true).first('n,,'), { message: /channel-binding type/ });
  t.throws(() => boundExchange(false).first('p=tls-server-end-point,,'), {
    message: /unexpected channel binding data/,
  });
  t.throws(() => boundExchange(false).first('y,,'), { message: /negotiation error/ });
  t.regex(boundExchange(false).first('n,,'), /^r=minetheirs,/);
  const unoffered = new ScramExchange(new NameSalts().mock('joe'), null, 'theirs');
  t.regex(
    unoffered.first('y,,n=joe,r=mine'),
    /^r=minetheirs,/,
    'the client supports channel binding, but none was offered',
  );
});

test('a proof bound to a different certificate is refused', async (t) => {
  const salt = Buffer.alloc(16, 1);
  const verifier = await scramVerifier('pencil', salt, 4_096);
  const prove = (shown: string): string | null => {
    const channel = { endPoint: Buffer.from('ours'), chosen: true };
    const exchange = new ScramExchange(verifier, channel, 'theirs');
    const header = 'p=tls-server-end-point,,';
    const answer = exchange.first(`${header}n=joe,r=mine`);
    const binding = Buffer.from(`${header}${shown}`).toString('base64');
    const unproved = `c=${binding},r=minetheirs`;
    const salted = pbkdf2Sync('pencil', salt, 4_096, 32, 'sha256');
    const clientKey = createHmac('sha256', salted).update('Client Key').digest();
    const storedKey = createHash('sha256').update(clientKey).digest();
    const transcript = `n=joe,r=mine,${answer},${unproved}`;
    const signature = createHmac('sha256', storedKey).update(transcript).digest();
    const proof = Buffer.from(clientKey.map((byte, index) => byte ^ (signature[index] ?? 0)));
    return exchange.final(`${unproved},p=${proof.toString('base64')}`);
  };
  t.regex(prove('ours') ?? '', /^v=/);
  t.is(prove('of somebody between'), null);
});

test('session settings can be set with SET or startup options', (t) => {
  const own = new SessionSettings();
  t.deepEqual([own.timeoutMs, own.nanoseconds], [undefined, false]);
  for (const [value, milliseconds] of [
    ['5s', 5_000],
    ['250', 250],
    ['2 min', 120_000],
    ['0', undefined],
  ] as const) {
    own.set('statement_timeout', value, false);
    t.is(own.timeoutMs, milliseconds, value);
  }
  t.throws(() => own.set('statement_timeout', 'soon', false), { instanceOf: ProtocolError });
  t.is(own.valueQuery('timestamp_precision'), `SELECT 'us' AS "timestamp_precision"`);
  t.is(own.valueQuery('search_path'), `SELECT '"$user", public' AS "search_path"`);
  t.is(own.valueQuery('work_mem'), null);
  t.throws(() => own.set('timestamp_precision', 'ms', false), { message: /expected us or ns$/ });
  own.set('extra_float_digits', '3', false);
  const request = new SessionSettings(
    new Map([
      [
        'options',
        String.raw`-c statement_timeout=50 --timestamp-precision=ns -cx=y -c search_path=a,\ b`,
      ],
      ['application_name', 'größe'],
    ]),
  );
  t.deepEqual([request.timeoutMs, request.nanoseconds], [50, true]);
  t.is(request.valueQuery('search_path'), `SELECT 'a, b' AS "search_path"`);
  t.is(request.valueQuery('application_name'), `SELECT 'gr????e' AS "application_name"`);
  request.set('timestamp_precision', 'us', false);
  request.set('statement_timeout', '1s', false);
  request.set('statement_timeout', null, false);
  t.deepEqual([request.timeoutMs, request.nanoseconds], [50, false]);
  request.reset('work_mem');
  request.reset('timestamp_precision');
  t.true(request.nanoseconds);
  request.set('statement_timeout', '1s', false);
  request.reset();
  t.is(request.timeoutMs, 50);
});

test('startup, TLS and cancel requests are distinguished', (t) => {
  const reader = new FrameReader();
  reader.push(startup('joe', 2, ['options', '-c statement_timeout=50']));
  const frame = reader.nextStartup();
  t.deepEqual(frame === null ? null : readStartup(frame), {
    kind: 'startup',
    major: 3,
    minor: 2,
    parameters: new Map([
      ['user', 'joe'],
      ['options', '-c statement_timeout=50'],
    ]),
  });
});
