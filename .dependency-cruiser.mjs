/** Import rules between the folders of ts/, as described in docs/architecture.md. */
import { dirname } from 'node:path/posix';

/** Each folder, with the other folders of ts/ that it may import. */
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
  library: ['engine', 'session', 'ingest', 'copy'],
  mcp: ['session'],
  notebooks: ['session'],
  http: [
    'sockets',
    'tls',
    'session',
    'ingest',
    'mcp',
    'notebooks',
    'auth',
    'config',
    'observability',
  ],
  pgwire: ['sockets', 'tls', 'session', 'ingest', 'auth', 'config', 'observability'],
  'line-tcp': ['sockets', 'tls', 'session', 'ingest', 'auth', 'config', 'observability'],
  console: ['sql'],
};

/** Each submodule, with the other submodules of the same folder that it may import. */
const SHELVES = {
  'sql/lexer': [],
  'sql/parser': ['lexer'],
  'sql/expressions': ['parser', 'lexer'],
  'sql/queries': ['expressions', 'parser', 'lexer'],
  'sql/statements': ['queries', 'expressions', 'parser', 'lexer'],
  'sql/printer': ['lexer'],
  'pgwire/protocol': [],
  'pgwire/statements': ['protocol'],
  'pgwire/copy': ['statements', 'protocol'],
  'pgwire/conversation': ['copy', 'statements', 'protocol'],
  'pgwire/login': ['protocol'],
  'pgwire/connection': ['conversation', 'login', 'protocol'],
};

/** Layers of the console, lowest first: a folder may import only folders from earlier rows. */
const CONSOLE = [
  ['api', 'sql', 'styles'],
  ['model'],
  ['page'],
  ['state'],
  ['ui'],
  ['dialogs', 'editor', 'signin'],
  ['access', 'chart', 'import', 'jobs', 'plan', 'profile', 'queries', 'views'],
  ['cells', 'grid', 'schema', 'start', 'tables'],
  ['follow', 'saved'],
  ['notebook'],
  ['shell'],
];
/** Modules that every submodule of their folder may import. */
const BELOW_ALL = '[.]generated[.]ts$|^ts/console/src/(?:fill|texts)[.]ts$';
CONSOLE.forEach((row, at) => {
  for (const name of row) {
    SHELVES[`console/src/${name}`] = CONSOLE.slice(0, at).flat();
  }
});

const folders = Object.entries(MAY_IMPORT).map(([folder, others]) => ({
  name: `${folder}-imports`,
  comment: `ts/${folder} may import ${others.join(', ') || 'nothing of ours'}`,
  severity: 'error',
  from: { path: `^ts/${folder}/` },
  to: { path: '^ts/', pathNot: [folder, ...others].map((name) => `^ts/${name}/`) },
}));

/**
 * A submodule must not import files that lie directly in its folder, such as the entry point.
 * Generated types and the console's strings are exceptions.
 */
const shelves = Object.entries(SHELVES).map(([shelf, others]) => {
  const folder = dirname(shelf);
  const allowed = [shelf, ...others.map((name) => `${folder}/${name}`)];
  return {
    name: `${shelf}-imports`,
    comment: `ts/${shelf} may import ${others.join(', ') || 'no other shelf'}`,
    severity: 'error',
    from: { path: `^ts/${shelf}/` },
    to: {
      path: `^ts/${folder}/`,
      pathNot: [...allowed.map((name) => `^ts/${name}/`), BELOW_ALL],
    },
  };
});

export default {
  forbidden: [
    ...folders,
    ...shelves,
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
      from: {},
      to: { circular: true },
    },
  ],
};
