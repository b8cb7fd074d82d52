/** Who may import whom among the folders of ts/: docs/architecture.md, as rules. */

/** Folder → folders of ours it may import, besides itself. */
const MAY_IMPORT = {
  sql: [],
  border: [],
  config: ['border'],
  sockets: ['config'],
  observability: ['config'],
  engine: ['border', 'observability'],
  auth: ['engine', 'config', 'observability'],
  session: ['sql', 'engine', 'auth', 'observability'],
  ingest: ['engine', 'session', 'config'],
  tls: ['config'],
  copy: ['sql', 'engine', 'session', 'ingest', 'config', 'observability'],
  access: ['sql', 'engine', 'session', 'auth', 'observability'],
  http: ['sockets', 'tls', 'session', 'ingest', 'auth', 'config', 'observability'],
  pgwire: ['sockets', 'tls', 'session', 'ingest', 'auth', 'config', 'observability'],
  console: ['sql'],
};

const folders = Object.entries(MAY_IMPORT).map(([folder, others]) => ({
  name: `${folder}-imports`,
  comment: `ts/${folder} may import ${others.join(', ') || 'nothing of ours'}`,
  severity: 'error',
  from: { path: `^ts/${folder}/` },
  to: { path: '^ts/', pathNot: [folder, ...others].map((name) => `^ts/${name}/`) },
}));

export default {
  forbidden: [
    ...folders,
    {
      name: 'only-engine-loads-native',
      comment: 'the border has one door',
      severity: 'error',
      from: { pathNot: '^ts/engine/' },
      to: { path: '^native/' },
    },
    {
      name: 'sql-runs-in-a-browser',
      comment: 'ts/sql imports no module of Node',
      severity: 'error',
      from: { path: '^ts/sql/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: { pathNot: '^ts/(sql|console)/' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
  ],
};
