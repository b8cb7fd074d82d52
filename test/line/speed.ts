/**
 * Rows per second that servers take as lines over HTTP, by turns:
 * `npm run line-speed -- http://127.0.0.1:9000 http://127.0.0.1:9310`. 8 columns, 2 of them
 * symbols, 1,000 series; requests of so many bytes over so many connections, each of which waits
 * for its answer. The clock runs from the first byte to the last answer.
 */
import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '2000000' },
    bytes: { type: 'string', default: '1048576' },
    connections: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '3' },
  },
});

function line(row: number): string {
  const random = (row * 2_654_435_761) % 4_294_967_296;
  const symbols = `sym=s${random % 1000},side=${row % 2 === 0 ? 'buy' : 'sell'}`;
  const prices = `price=${(random % 100_000) / 100},amount=${(random % 99_991) / 100_000}`;
  const others = `bid=${(random % 77_777) / 100},qty=${random % 65_537}i,venue=${random % 50}i`;
  const time = 1_700_000_000_000_000_000n + BigInt(row) * 1_000_000n;
  return `line_speed,${symbols} ${prices},${others},ok=${row % 3 === 0 ? 't' : 'f'} ${time}\n`;
}

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

async function send(url: string, agent: Agent, body: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const headers = { 'content-length': body.length };
    const sent = request(`${url}/write`, { method: 'POST', agent, headers }, (response) => {
      response.resume();
      response.once('end', () => {
        if (response.statusCode === 204) {
          resolve();
        } else {
          reject(new Error(`status ${response.statusCode ?? 0}`));
        }
      });
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

/** Answers rows per second, and the time of a request that 99 of 100 do not exceed. */
async function measure(url: string, bodies: readonly Buffer[]): Promise<[number, number]> {
  const connections = Number(values.connections);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const times: number[] = [];
  const started = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const began = performance.now();
      await send(url, agent, body);
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - started) / 1000;
  agent.destroy();
  times.sort((a, b) => a - b);
  return [Number(values.rows) / seconds, times[Math.floor(times.length * 0.99)] ?? 0];
}

const bodies = requests();
for (let round = 0; round < Number(values.rounds); round += 1) {
  for (const url of positionals) {
    const [rate, slowest] = await measure(url, bodies);
    process.stdout.write(`${url}: ${Math.round(rate)} rows/s, p99 ${slowest.toFixed(1)} ms\n`);
  }
}
