/** The setup that a page needs before its first example runs. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { commandFile } from '../golden/server.js';

export interface Setup {
  /** Statements to execute. */
  readonly sql?: readonly string[];
  /** Shell commands to run after the statements. */
  readonly shell?: string;
  /** Server settings. */
  readonly set?: readonly string[];
  /** Server arguments. */
  readonly args?: readonly string[];
  /** Files in the shell's folder, which COPY and the file functions also use. */
  readonly files?: Readonly<Record<string, string>>;
  /** Headers for the requests that send the statements. */
  readonly headers?: Record<string, string>;
  /** Languages of the blocks that this test runs; all of them if absent. */
  readonly languages?: readonly string[];
  /** Minimum number of outputs shown on the page that this test must compare; defaults to 0. */
  readonly minOutputs?: number;
  /** Whether the page shows the output of every example. */
  readonly showsAll?: boolean;
  /** Whether the page queries views, which follow their base with a delay. */
  readonly lags?: boolean;
}

const table = (columns: string): string =>
  `CREATE TABLE trades (${columns}) TIMESTAMP(ts) PARTITION BY DAY`;
const TRADES = table('ts TIMESTAMP, symbol SYMBOL, price DOUBLE');
const TRADES_OF_TRADERS = table('ts TIMESTAMP, symbol SYMBOL, price DOUBLE, trader VARCHAR');
const ADMIN = {
  set: ['acl.enabled=true', 'acl.admin.password=quest'],
  headers: { authorization: `Basic ${btoa('admin:quest')}` },
};
/** Adds the command line to the shell's folder. */
const COMMAND = [
  `printf '#!/bin/sh\\nexec "%s" "%s" "$@"\\n' '${process.execPath}' '${commandFile()}' > tidemark`,
  'chmod +x tidemark',
].join('\n');
const CSV = 'ts,symbol,price\n2026-01-01T00:00:00Z,BTC-USD,101.5\n2026-01-02T00:00:00Z,GOLD,60\n';

const REFERENCE = fileURLToPath(new URL('../../../docs/sql', import.meta.url));
const OVERVIEW = 'README.md';

/** The example tables of the SQL reference, which its overview creates. */
function exampleTables(): readonly string[] {
  const text = readFileSync(join(REFERENCE, OVERVIEW), 'utf8');
  return [...text.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, sql = '']) => sql);
}

/** Each page of the SQL reference starts with the example tables. */
function referenceSetups(): Readonly<Record<string, Setup>> {
  const sql = exampleTables();
  const pages = readdirSync(REFERENCE).filter((page) => page !== OVERVIEW);
  const administered = new Set(['users.md', 'grant.md']);
  return Object.fromEntries(
    pages.map((page) => [join('sql', page), { ...(administered.has(page) ? ADMIN : {}), sql }]),
  );
}

export const SETUPS: Readonly<Record<string, Setup>> = {
  'access-control.md': { ...ADMIN, sql: [TRADES_OF_TRADERS] },
  'guides/operate.md': { shell: COMMAND },
  'line-protocol.md': {
    ...ADMIN,
    sql: ['CREATE TABLE readings (ts TIMESTAMP, value DOUBLE) TIMESTAMP(ts) PARTITION BY DAY'],
    languages: ['sql'],
  },
  'mcp.md': { ...ADMIN, sql: [TRADES], languages: ['sql'] },
  'security.md': { ...ADMIN, languages: ['sql'] },
  'life-of-a-query.md': { args: ['--demo'] },
  'get-started/install.md': { args: ['--demo'] },
  // The tests in test/distribution run this page's commands, with the artefacts that they install.
  'guides/deploy.md': { languages: [] },
  'get-started/first-hour.md': { args: ['--demo'] },
  'get-started/first-dashboard.md': { args: ['--demo'] },
  'http.md': { minOutputs: 10, showsAll: true },
  'time-series.md': { minOutputs: 3 },
  'materialized-views.md': { minOutputs: 3, lags: true },
  'live-views.md': { minOutputs: 3, lags: true },
  // A check that runs before the rows arrive must not delay the next check by minutes.
  'storage-policies.md': {
    set: ['storage.policy.check.interval=1s'],
    minOutputs: 3,
    lags: true,
  },
  'views.md': { sql: [TRADES] },
  'copy.md': { sql: [TRADES], files: { 'trades.csv': CSV } },
  // The page shows a notebook cell, which has its own test.
  'notebooks.md': { languages: [] },
  'read-csv.md': {
    sql: [TRADES],
    files: {
      'trades.csv': CSV,
      'a.csv': CSV,
      'b.csv': CSV,
      'events.ndjson': '{"ts":"2026-01-01T00:00:00Z","kind":"start"}\n',
    },
    shell: 'mkdir 2026; gzip -c trades.csv > 2026/01.csv.gz',
  },
  'read-parquet.md': {
    shell: `
      parquet() { curl -sfG http://localhost:9000/exp -d fmt=parquet --data-urlencode "query=$1"; }
      parquet 'SELECT x * 60 price, x FROM long_sequence(5)' > trades.parquet
      mkdir -p trades/year=2025 old
      cp trades.parquet trades/year=2025/1.parquet
      for file in a b old/c; do cp trades.parquet $file.parquet; done
    `,
  },
  // The commands need a certificate, a token or the project's source code.
  'encryption.md': { languages: ['sql'] },
  'console.md': { languages: ['sql'] },
  ...referenceSetups(),
  // These programs have their own test, because a feed has no end.
  'changes.md': { languages: [] },
  // Its program has its own test (test/library); the package is not in a registry yet.
  'embedded.md': { languages: [] },
};
