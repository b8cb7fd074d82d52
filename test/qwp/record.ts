/**
 * npm run record-messages: records in `recorded.json` the messages that the official Python client
 * sends. Each row has a column `m`, whose upper half is replaced by the message number in mutation
 * runs.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';

import { run, SOURCES } from '../clients/tools.js';
import { startTestServer } from '../golden/server.js';

const PROGRAM = `
import sys, decimal, ipaddress, uuid, numpy, questdb, pandas, polars, pyarrow
mark = 0x5eedbeef00000000
def rows(sender, table, count):
    for row in range(count):
        sender.row(table, symbols={'s': 'x y,=%d' % row}, columns={'m': mark + row,
            'f': row + 0.5, 'i': row, 'b': row > 0, 'v': 'a "quoted" line %d' % row,
            't': questdb.TimestampMicros(row + 1), 'n': questdb.TimestampNanos(row + 1),
            'a': numpy.array([[row, 1.5], [2.5, 3.5]]), 'd': decimal.Decimal('-123.45'),
            'u': uuid.UUID('11111111-2222-3333-4444-555555555555'),
            'ip': ipaddress.ip_address('1.2.3.4'), 'c': questdb.Char('x'),
            'dm': questdb.DateMillis(5), 'l': questdb.Long256(0x12ab),
            'g': questdb.Geohash(197121, 20), 'y': b'bytes'},
            at=questdb.TimestampNanos(1700000000000000000 + row))
with questdb.connect(sys.argv[1]) as db:
    with db.sender() as sender:
        rows(sender, 'typed', 5)
        rows(sender, 'other', 3)
        sender.flush(wait=True)
        sender.row('typed', columns={'m': mark}, at=questdb.ServerTimestamp)
        sender.flush(wait=True)
        rows(sender, 'typed', 7)
        sender.flush(wait=True)
with questdb.connect(sys.argv[1]) as db:
    numbers = numpy.arange(40)
    times = pandas.to_datetime(1700000000000000 + numbers * 1000, unit='us')
    names = ['a', 'b', 'c']
    frame = {'m': mark + numbers, 'x': [None if n % 3 == 0 else n + 0.5 for n in numbers],
             't': ['é%d' % n for n in numbers]}
    db.dataframe(pandas.DataFrame({**frame, 's': pandas.Categorical.from_codes(numbers % 3, names),
        'i8': numbers.astype('int8'), 'i32': numbers.astype('int32'), 'b': numbers % 2 == 0,
        'f32': numbers.astype('float32'), 'ts': times}),
        table_name='pandas', at='ts', max_rows_per_batch=16)
    db.dataframe(pyarrow.table({'m': mark + numbers,
        'ts': pyarrow.array(numbers, pyarrow.timestamp('ns')),
        's': pyarrow.array([names[n % 3] for n in numbers]).dictionary_encode(),
        'd': pyarrow.array([decimal.Decimal('%d.1234' % n) for n in numbers],
                           pyarrow.decimal128(12, 4)),
        'y': pyarrow.array([None if n % 2 else b'xy' for n in numbers])}),
        table_name='arrow', at='ts', max_rows_per_batch=16)
`;

const server = await startTestServer();
const target = Number(new URL(server.url).port);
/** Bytes received on each connection. */
const said: Buffer[][] = [];
const proxy = createServer((socket) => {
  const upstream = connect(target, '127.0.0.1');
  const bytes: Buffer[] = [];
  said.push(bytes);
  socket.on('data', (chunk: Buffer) => bytes.push(chunk));
  socket.pipe(upstream).pipe(socket);
  socket.on('error', () => upstream.destroy());
  upstream.on('error', () => socket.destroy());
});
proxy.listen(0, '127.0.0.1');
await once(proxy, 'listening');
const { port } = proxy.address() as AddressInfo;
await run('python3', ['-W', 'ignore', '-c', PROGRAM, `ws::addr=127.0.0.1:${port};`]);
proxy.close();
await server.stop();

/** Returns the binary messages of a connection that writes. */
function messagesOf(bytes: Buffer): string[] {
  const head = bytes.indexOf('\r\n\r\n') + 4;
  const messages: string[] = [];
  if (!bytes.toString('latin1', 0, head).startsWith('GET /api/v4/write ')) {
    return messages;
  }
  for (let at = head; at < bytes.length;) {
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const start = at + (short < 126 ? 2 : short === 126 ? 4 : 10);
    const length =
      short < 126
        ? short
        : bytes.readUIntBE(start - (short === 126 ? 2 : 6), short === 126 ? 2 : 6);
    const mask = bytes.subarray(start, start + 4);
    const end = start + 4 + length;
    const payload = bytes
      .subarray(start + 4, end)
      .map((byte, target) => byte ^ (mask[target & 3] ?? 0));
    if (((bytes[at] ?? 0) & 0x0f) === 2) {
      messages.push(Buffer.from(payload).toString('base64'));
    }
    at = end;
  }
  return messages;
}

const scripts = said.map((one) => messagesOf(Buffer.concat(one))).filter((one) => one.length > 0);
const file = new URL('../qwp/recorded.json', SOURCES);
writeFileSync(file, `${JSON.stringify(scripts, null, 2)}\n`);
process.stdout.write(`${scripts.map((one) => one.length).join(', ')} messages\n`);
