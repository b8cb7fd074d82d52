/** Lines of a price feed, sent in requests over persistent connections. */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** Returns a line of one of 1,000 series, with 8 columns, 2 of them symbols. */
export function line(row: number): string {
  const random = (row * 2_654_435_761) % 4_294_967_296;
  const symbols = `sym=s${random % 1000},side=${row % 2 === 0 ? 'buy' : 'sell'}`;
  const prices = `price=${(random % 100_000) / 100},amount=${(random % 99_991) / 100_000}`;
  const others = `bid=${(random % 77_777) / 100},qty=${random % 65_537}i,venue=${random % 50}i`;
  const time = 1_700_000_000_000_000_000n + BigInt(row) * 1_000_000n;
  return `line_speed,${symbols} ${prices},${others},ok=${row % 3 === 0 ? 't' : 'f'} ${time}\n`;
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

/** Load durations. */
interface Load {
  readonly seconds: number;
  /** Sorted request times in milliseconds. */
  readonly times: readonly number[];
}

/**
 * Sends bodies over several connections. Each connection sends the next body after the previous
 * response, but no sooner than `everyMs` after the previous request.
 */
export async function sendBodies(
  url: string,
  bodies: readonly Buffer[],
  connections: number,
  everyMs = 0,
): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const times: number[] = [];
  const started = performance.now();
  let next = 0;
  const worker = async (index: number): Promise<void> => {
    let due = started + (index * everyMs) / connections;
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const early = due - performance.now();
      if (early > 0) {
        await sleep(early);
      }
      due = Math.max(due, performance.now()) + everyMs;
      const began = performance.now();
      await send(url, agent, body);
      times.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, index) => worker(index)));
  const seconds = (performance.now() - started) / 1000;
  agent.destroy();
  return { seconds, times: times.sort((a, b) => a - b) };
}
