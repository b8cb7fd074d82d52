/**
 * Ingestion rate of lines over HTTP in rows per second, on several servers in turn: `npm run
 * line-speed -- http://127.0.0.1:9000 http://127.0.0.1:9310`. Lines have 8 columns, 2 of them
 * symbols, in 1,000 series. Requests of a fixed size are sent over several connections, each of
 * which waits for its response. Measures from the first byte to the last response.
 */
import { parseArgs } from 'node:util';

import { line, sendBodies } from './load.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '2000000' },
    bytes: { type: 'string', default: '1048576' },
    connections: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
  },
});

function requests(): Buffer[] {
  const all: Buffer[] = [];
  let text = '';
  for (let row = 0; row < Number(values.rows); row += 1) {
    text += line(row);
    if (text.length >= Number(values.bytes)) {
      all.push(Buffer.from(text));
      text = '';
    }
  }
  return text === '' ? all : [...all, Buffer.from(text)];
}

const bodies = requests();
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const url of positionals) {
    const { seconds, times } = await sendBodies(url, bodies, Number(values.connections));
    const rate = Math.round(Number(values.rows) / seconds);
    const slowest = times[Math.floor(times.length * 0.99)] ?? 0;
    process.stdout.write(`${url}: ${rate} rows/s, p99 ${slowest.toFixed(1)} ms\n`);
  }
}
