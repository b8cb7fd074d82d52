/**
 * Every message of protocol 3.0 in bytes: server messages are encoded, client messages are decoded.
 * Bytes are written in hexadecimal, with strings in quotes; spaces are ignored.
 *
 * This server never sends FunctionCallResponse, NotificationResponse, CopyBothResponse, or the
 * requests for MD5, Kerberos, GSSAPI and SSPI. The engine produces DataRow; its bytes are in
 * `data-rows.test.ts`.
 */
import test from 'ava';

import { readMessage, readStartup } from '../../ts/pgwire/protocol/client-messages.js';
import { FrameReader } from '../../ts/pgwire/protocol/frames.js';
import * as reply from '../../ts/pgwire/protocol/server-messages.js';
import { describeField } from '../../ts/pgwire/protocol/type-oids.js';
import { shown } from './raw-client.js';

/** Converts `51 00000006 'a' 00` to bytes. */
function bytes(golden: string): Buffer {
  const parts = golden.matchAll(/'([^']*)'|([0-9a-f]+)/g);
  return Buffer.concat(
    [...parts].map(([, text, hex]) =>
      text === undefined ? Buffer.from(hex ?? '', 'hex') : Buffer.from(text),
    ),
  );
}

const column = (name: string, type: string, position: number): ReturnType<typeof describeField> =>
  describeField({ name, type, dimensions: 0 }, position, type === 'LONG' ? 1 : 0);

const SENT: Readonly<Record<string, readonly [sent: Buffer, golden: string]>> = {
  AuthenticationOk: [reply.authenticationOk(), `'R' 00000008 00000000`],
  AuthenticationCleartextPassword: [reply.authenticationCleartext(), `'R' 00000008 00000003`],
  AuthenticationSASL: [
    reply.authenticationSasl(['SCRAM-SHA-256-PLUS', 'SCRAM-SHA-256']),
    `'R' 0000002a 0000000a 'SCRAM-SHA-256-PLUS' 00 'SCRAM-SHA-256' 00 00`,
  ],
  AuthenticationSASLContinue: [
    reply.authenticationSaslContinue('r=ab,s=cd,i=4096'),
    `'R' 00000018 0000000b 'r=ab,s=cd,i=4096'`,
  ],
  AuthenticationSASLFinal: [
    reply.authenticationSaslFinal('v=abc='),
    `'R' 0000000e 0000000c 'v=abc='`,
  ],
  ParameterStatus: [
    reply.parameterStatus('TimeZone', 'UTC'),
    `'S' 00000011 'TimeZone' 00 'UTC' 00`,
  ],
  BackendKeyData: [
    reply.backendKeyData(258, Buffer.from([1, 2, 3, 4])),
    `'K' 0000000c 00000102 01020304`,
  ],
  NegotiateProtocolVersion: [
    reply.negotiateProtocolVersion(0, ['_pq_.x']),
    `'v' 00000013 00000000 00000001 '_pq_.x' 00`,
  ],
  'ReadyForQuery, idle': [reply.readyForQuery('I'), `'Z' 00000005 'I'`],
  'ReadyForQuery, in a block': [reply.readyForQuery('T'), `'Z' 00000005 'T'`],
  'ReadyForQuery, failed': [reply.readyForQuery('E'), `'Z' 00000005 'E'`],
  ParseComplete: [reply.parseComplete(), `'1' 00000004`],
  BindComplete: [reply.bindComplete(), `'2' 00000004`],
  CloseComplete: [reply.closeComplete(), `'3' 00000004`],
  NoData: [reply.noData(), `'n' 00000004`],
  EmptyQueryResponse: [reply.emptyQueryResponse(), `'I' 00000004`],
  PortalSuspended: [reply.portalSuspended(), `'s' 00000004`],
  ParameterDescription: [
    reply.parameterDescription([23, 1043]),
    `'t' 0000000e 0002 00000017 00000413`,
  ],
  RowDescription: [
    reply.rowDescription([column('c', 'CHAR', 0), column('né', 'LONG', 1)]),
    `'T' 00000030 0002
     'c' 00 00000000 0001 00000412 ffff 00000005 0000
     'né' 00 00000000 0002 00000014 0008 ffffffff 0001`,
  ],
  CommandComplete: [reply.commandComplete('INSERT 0 3'), `'C' 0000000f 'INSERT 0 3' 00`],
  'CopyInResponse, text': [reply.copyResponse('in', 0, 2), `'G' 0000000b 00 0002 0000 0000`],
  'CopyOutResponse, binary': [reply.copyResponse('out', 1, 1), `'H' 00000009 01 0001 0001`],
  CopyData: [reply.copyData(Buffer.from('1\t2\n')), `'d' 00000008 3109320a`],
  CopyDone: [reply.copyDone(), `'c' 00000004`],
  ErrorResponse: [
    reply.errorResponse({
      severity: 'ERROR',
      sqlState: '42P01',
      message: 'no',
      detail: 'd',
      hint: 'h',
      position: 15,
      where: 'w',
    }),
    `'E' 0000002b 'SERROR' 00 'VERROR' 00 'C42P01' 00 'Mno' 00 'Dd' 00 'Hh' 00 'P15' 00 'Ww' 00 00`,
  ],
  NoticeResponse: [
    reply.noticeResponse({ severity: 'NOTICE', sqlState: '00000', message: 'n' }),
    `'N' 0000001f 'SNOTICE' 00 'VNOTICE' 00 'C00000' 00 'Mn' 00 00`,
  ],
};

for (const [name, [sent, golden]] of Object.entries(SENT)) {
  test(`${name} is encoded to the recorded bytes`, (t) => {
    t.is(sent.toString('hex'), bytes(golden).toString('hex'));
    t.is(sent.readInt32BE(1), sent.length - 1);
  });
}

const READ: Readonly<Record<string, readonly [golden: string, read: unknown]>> = {
  Query: [`'Q' 0000000d 'SELECT 1' 00`, { kind: 'query', text: 'SELECT 1' }],
  Parse: [
    `'P' 00000016 's' 00 'SELECT $1' 00 0001 00000017`,
    { kind: 'parse', name: 's', text: 'SELECT $1', types: [23] },
  ],
  'Bind of a text value, a binary value and NULL': [
    `'B' 00000025 'p' 00 's' 00 0003 0000 0001 0000 0003 00000001 'x' 00000002 0007 ffffffff
     0001 0001`,
    {
      kind: 'bind',
      portal: 'p',
      statement: 's',
      parameterFormats: [0, 1, 0],
      parameters: ['x', Buffer.from([0, 7]), null],
      resultFormats: [1],
    },
  ],
  'Describe, statement': [`'D' 00000007 'S' 's' 00`, { kind: 'describe', what: 'S', name: 's' }],
  'Describe, portal': [`'D' 00000006 'P' 00`, { kind: 'describe', what: 'P', name: '' }],
  Execute: [`'E' 0000000a 'p' 00 00000064`, { kind: 'execute', portal: 'p', maxRows: 100 }],
  'Close, statement': [`'C' 00000007 'S' 's' 00`, { kind: 'close', what: 'S', name: 's' }],
  'Close, portal': [`'C' 00000006 'P' 00`, { kind: 'close', what: 'P', name: '' }],
  Sync: [`'S' 00000004`, { kind: 'sync' }],
  Flush: [`'H' 00000004`, { kind: 'flush' }],
  Terminate: [`'X' 00000004`, { kind: 'terminate' }],
  PasswordMessage: [`'p' 0000000a 'quest' 00`, { kind: 'password', body: Buffer.from('quest\0') }],
  SASLInitialResponse: [
    `'p' 0000001a 'SCRAM-SHA-256' 00 00000004 'n,,n'`,
    { kind: 'password', body: bytes(`'SCRAM-SHA-256' 00 00000004 'n,,n'`) },
  ],
  SASLResponse: [`'p' 0000000a 'c=biws'`, { kind: 'password', body: Buffer.from('c=biws') }],
  FunctionCall: [`'F' 0000000e 00000001 0000 0000 0000`, { kind: 'functionCall' }],
  CopyData: [`'d' 00000006 310a`, { kind: 'copyData', bytes: Buffer.from('1\n') }],
  CopyDone: [`'c' 00000004`, { kind: 'copyDone' }],
  CopyFail: [`'f' 00000008 'why' 00`, { kind: 'copyFail', reason: 'why' }],
};

for (const [name, [golden, read]] of Object.entries(READ)) {
  test(`${name} is decoded from the recorded bytes`, (t) => {
    const reader = new FrameReader();
    reader.push(bytes(golden));
    const frame = reader.next(1_000);
    t.not(frame, null);
    t.is(reader.buffered, 0, 'the length is correct');
    if (frame !== null) {
      t.deepEqual(shown(readMessage(frame)), read);
    }
  });
}

const FIRST: Readonly<Record<string, readonly [golden: string, read: unknown]>> = {
  StartupMessage: [
    `0000001f 00030000 'user' 00 'joe' 00 'database' 00 'qdb' 00 00`,
    {
      kind: 'startup',
      major: 3,
      minor: 0,
      parameters: new Map([
        ['user', 'joe'],
        ['database', 'qdb'],
      ]),
    },
  ],
  SSLRequest: ['00000008 04d2162f', { kind: 'ssl' }],
  GSSENCRequest: ['00000008 04d21630', { kind: 'gss' }],
  CancelRequest: [
    '00000010 04d2162e 00000102 01020304',
    { kind: 'cancel', processId: 258, secret: Buffer.from([1, 2, 3, 4]) },
  ],
};

for (const [name, [golden, read]] of Object.entries(FIRST)) {
  test(`${name} is decoded from the recorded bytes`, (t) => {
    const reader = new FrameReader();
    reader.push(bytes(golden));
    const frame = reader.nextStartup();
    t.is(reader.buffered, 0, 'the length is correct');
    t.deepEqual(frame === null ? null : (readStartup(frame) as unknown), read);
  });
}
