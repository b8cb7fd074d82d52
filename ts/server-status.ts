/** The status of a running server: GET /api/v1/status, which `tidemark status` reads. */
import { randomBytes } from 'node:crypto';
import { statfsSync } from 'node:fs';

import type { Config } from './config/index.js';
import type { Encryption } from './encryption.js';
import type { Damage, Database } from './engine/index.js';
import { httpPaths, STATUS_PATH, type StatusSource } from './http/index.js';
import type { Logger } from './observability/index.js';
import { writeServerFile } from './server-file.js';
import { parse } from './sql/index.js';
import { packageVersion } from './start-error.js';
import type { TlsEndpoint } from './tls/index.js';

export interface ServerStatus {
  readonly version: string;
  readonly pid: number;
  readonly uptimeSeconds: number;
  readonly tables: number;
  readonly rows: number;
  /** Size of all tables on disk. */
  readonly tableBytes: number;
  readonly diskFreeBytes: number;
  readonly diskSizeBytes: number;
  readonly residentBytes: number;
  /** Size of the rows that exist only in memory and the log. */
  readonly unwrittenBytes: number;
  readonly queryMemoryBytes: number;
  readonly queryMemoryLimitBytes: number;
  readonly runningQueries: number;
  readonly waitingQueries: number;
  readonly damages: readonly Damage[];
}

/** Addresses of the listeners; `off` if disabled. */
export interface Addresses {
  readonly http: string;
  readonly http_min: string;
  readonly pg: string;
  readonly line: string;
}

export const OFF = 'off';

interface Announced {
  readonly config: Config;
  readonly encryption: Encryption;
  readonly addresses: Addresses;
  readonly status: StatusSource;
  readonly logger: Logger;
}

/** Logs the start and writes the server file. A full disk does not prevent startup. */
export function announce(root: string, announced: Announced): void {
  const { config, encryption, addresses, status, logger } = announced;
  const url = (endpoint: TlsEndpoint, address: string, base: string): string[] => {
    const scheme = encryption.of(endpoint) === null ? 'http' : 'https';
    return address === OFF ? [] : [`${scheme}://${reachable(address)}${base}${STATUS_PATH}`];
  };
  const { http, pg, line } = addresses;
  logger.info('started', { root, http, pg, line });
  try {
    writeServerFile(root, {
      pid: process.pid,
      version: packageVersion(),
      started: new Date(Date.now() - process.uptime() * 1000).toISOString(),
      addresses: { ...addresses },
      // The minimal port has its own connection limit, so it answers even if the main one is full.
      statusUrls: [
        ...url('http.min', addresses.http_min, ''),
        ...url('http', addresses.http, httpPaths(config).base),
      ],
      token: status.token,
    });
  } catch (error) {
    logger.warn('server_file', { notice: 'tidemark status cannot find this server', error });
  }
}

/** Replaces a wildcard address, to which clients cannot connect. */
function reachable(address: string): string {
  return address.replace(/^0\.0\.0\.0(?=:)/, '127.0.0.1').replace(/^\[::\](?=:)/, '[::1]');
}

/** Encloses an IPv6 address in brackets. */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

const TOKEN_BYTES = 24;
const TABLES = 'SELECT count(), sum(rowCount), sum(diskSize) FROM table_storage()';

export function statusSource(root: string, database: Database): StatusSource {
  return {
    token: randomBytes(TOKEN_BYTES).toString('base64url'),
    read: () => readStatus(root, database),
  };
}

async function readStatus(root: string, database: Database): Promise<ServerStatus> {
  const [tables = 0, rows = 0, tableBytes = 0] = await figures(database);
  const numbers: Readonly<Record<string, number>> = { ...database.metrics() };
  const disk = statfsSync(root);
  return {
    version: packageVersion(),
    pid: process.pid,
    uptimeSeconds: Math.floor(process.uptime()),
    tables,
    rows,
    tableBytes,
    diskFreeBytes: disk.bavail * disk.bsize,
    diskSizeBytes: disk.blocks * disk.bsize,
    residentBytes: process.memoryUsage.rss(),
    unwrittenBytes: numbers['unwritten_bytes'] ?? 0,
    queryMemoryBytes: numbers['query_memory_bytes'] ?? 0,
    queryMemoryLimitBytes: numbers['query_memory_limit_bytes'] ?? 0,
    runningQueries: numbers['running_queries'] ?? 0,
    waitingQueries: numbers['waiting_queries'] ?? 0,
    damages: database.damages(),
  };
}

/** Returns the number of tables, their rows and their size on disk. */
async function figures(database: Database): Promise<readonly number[]> {
  const tree = Buffer.from(JSON.stringify(parse(TABLES)));
  const statement = await database.prepare(tree, { user: 'status', text: TABLES });
  try {
    const { chunk } = await statement.execute([], { rows: { format: 'json' } });
    const [row = []] = JSON.parse(`[${chunk?.bytes.toString('utf8') ?? ''}]`) as number[][];
    return row.map(Number);
  } finally {
    statement.close();
  }
}
