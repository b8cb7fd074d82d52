/**
 * `tidemark status`: whether a server uses the root, and its figures. The server's file names its
 * addresses, and its HTTP endpoint returns the figures.
 */
import { request as requestPlain } from 'node:http';
import { request as requestEncrypted } from 'node:https';

import { gib } from './host-checks.js';
import { processOf, readServerFile, type ServerFile } from './server-file.js';
import type { ServerStatus } from './server-status.js';
import { reasonOf } from './start-error.js';

/** Exit codes, as for the status action of init scripts. */
const EXIT = { running: 0, damaged: 1, stopped: 3, unknown: 4 } as const;

interface Report {
  readonly root: string;
  readonly state: keyof typeof EXIT;
  readonly pid?: number;
  /** Why the state could not be determined. */
  readonly reason?: string;
  readonly server?: Pick<ServerFile, 'version' | 'started' | 'addresses'>;
  readonly figures?: ServerStatus;
}

const TIMEOUT_MS = 5_000;

/** Returns the exit code. */
export async function runStatus(root: string, json: boolean): Promise<number> {
  const report = await readReport(root);
  process.stdout.write(json ? `${JSON.stringify(report)}\n` : described(report));
  return EXIT[report.state];
}

async function readReport(root: string): Promise<Report> {
  const pid = processOf(root);
  if (pid === null) {
    return { root, state: 'stopped' };
  }
  const file = readServerFile(root);
  if (file?.pid !== pid) {
    const reason = 'it does not accept requests: it is starting or stopping, or embeds the library';
    return { root, state: 'unknown', pid, reason };
  }
  const { version, started, addresses } = file;
  const known = { root, pid, server: { version, started, addresses } };
  if (file.statusUrls.length === 0) {
    return { ...known, state: 'running' };
  }
  let reason = '';
  for (const url of file.statusUrls) {
    try {
      const figures = await readStatus(url, file.token);
      return { ...known, state: figures.damages.length > 0 ? 'damaged' : 'running', figures };
    } catch (error) {
      reason = `${new URL(url).host} does not answer: ${reasonOf(error)}`;
    }
  }
  return { ...known, state: 'unknown', reason };
}

function readStatus(url: string, token: string): Promise<ServerStatus> {
  const request = url.startsWith('https:') ? requestEncrypted : requestPlain;
  const options = {
    headers: { Authorization: `Bearer ${token}` },
    timeout: TIMEOUT_MS,
    agent: false,
    // The token identifies the server. Its certificate need not be valid for a loopback address.
    rejectUnauthorized: false,
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => {
        if (response.statusCode === 200) {
          resolve(JSON.parse(text) as ServerStatus);
        } else {
          reject(new Error(`status ${response.statusCode ?? 0}: ${text.trim()}`));
        }
      });
    });
    sent.once('timeout', () => sent.destroy(new Error(`no response within ${TIMEOUT_MS} ms`)));
    sent.once('error', reject);
    sent.end();
  });
}

function described({ root, state, pid, reason, server, figures }: Report): string {
  const process = pid === undefined ? '' : ` [pid=${pid}]`;
  const headlines = {
    running: 'the server is running',
    damaged: 'the server is running, and tables are damaged',
    stopped: 'no server is running',
    unknown: `a process uses the root directory, but ${reason ?? ''}`,
  };
  const lines: [string, string][] = [['root', root]];
  if (server !== undefined) {
    lines.push(['version', server.version], ['started', server.started]);
    lines.push(...Object.entries(server.addresses));
  }
  if (figures !== undefined) {
    lines.push(...figureLines(figures));
  }
  const table = lines.map(([name, value]) => `${name.padEnd(10)}  ${value}`);
  return [`${headlines[state]}${process}`, ...table, ''].join('\n');
}

function figureLines(figures: ServerStatus): [string, string][] {
  const { tables, rows, tableBytes, diskFreeBytes, diskSizeBytes, damages } = figures;
  const { residentBytes, unwrittenBytes, queryMemoryBytes, queryMemoryLimitBytes } = figures;
  return [
    ['uptime', duration(figures.uptimeSeconds)],
    ['tables', `${tables}, ${rows} rows, ${gib(tableBytes)}`],
    ['disk', `${gib(diskFreeBytes)} of ${gib(diskSizeBytes)} free`],
    ['memory', `${gib(residentBytes)} resident, ${gib(unwrittenBytes)} of unwritten rows`],
    ['queries', `${figures.runningQueries} running, ${figures.waitingQueries} waiting`],
    ['', `${gib(queryMemoryBytes)} of ${gib(queryMemoryLimitBytes)} query memory`],
    ...damages.map(({ table, what }): [string, string] => ['damaged', `table '${table}': ${what}`]),
  ];
}

/** `93784` → `1d 2h 3m 4s`. */
function duration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'm'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first < 0 ? -1 : first)
    .map(([count, unit]) => `${count}${unit}`)
    .join(' ');
}
