/**
 * The examples on the first page, copied from the page and run unchanged against its server. If a
 * client is missing, its examples are reported and skipped.
 */
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';

import type { ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';

import { has, run, SOURCES, TOOLS } from '../clients/tools.js';
import type { TestServer } from '../golden/server.js';
import { TestProvider } from '../oidc/provider.js';
import { CertificateFolder } from '../tls/certificates.js';
import { browserTest, openBrowser, BrowserUser, serverFor } from './user.js';

openBrowser();

/** A path inside the project, so that Node finds the packages. */
const BUILD = fileURLToPath(new URL('../../', import.meta.url));
const JAR = join(TOOLS, 'jars', 'postgresql.jar');
const WAIT_MS = 240_000;

interface Client {
  readonly name: string;
  readonly isThere: () => Promise<boolean> | boolean;
  readonly file: string;
  readonly command: readonly [string, ...string[]];
  readonly prints: RegExp;
  readonly rows: number;
}

const CLIENTS: readonly Client[] = [
  {
    name: 'curl',
    isThere: () => has('curl', '--version'),
    file: 'example.sh',
    command: ['bash', '-eu', 'example.sh'],
    prints: /"oslo-1",4\.2\]/,
    rows: 2,
  },
  {
    name: 'psql',
    isThere: () => has('psql', '--version'),
    file: 'example.sh',
    command: ['bash', '-eu', 'example.sh'],
    prints: /oslo-1 +\| +4\.2\n\(1 row\)/,
    rows: 1,
  },
  {
    name: 'Python',
    isThere: () => has('python3', '-c', 'import psycopg'),
    file: 'example.py',
    command: ['python3', 'example.py'],
    prints: /datetime\(.*'oslo-1', 4\.2\)/,
    rows: 1,
  },
  {
    name: 'Node',
    isThere: () => true,
    file: 'example.mjs',
    command: [process.execPath, 'example.mjs'],
    prints: /station: 'oslo-1', temperature: 4\.2/,
    rows: 1,
  },
  {
    name: 'Go',
    isThere: async () =>
      existsSync(join(TOOLS, 'bin', 'pgx-client')) && (await has('go', 'version')),
    file: 'main.go',
    command: ['go', 'run', '.'],
    prints: /^1 rows$/m,
    rows: 1,
  },
  {
    name: 'Java',
    isThere: async () => existsSync(JAR) && (await has('java', '-version')),
    file: 'Readings.java',
    command: ['java', '-cp', JAR, 'Readings.java'],
    prints: /oslo-1/,
    rows: 1,
  },
];

async function examples(page: Page): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  await page.locator('.start-connect pre').waitFor();
  for (const { name } of CLIENTS) {
    await page.getByRole('tab', { name, exact: true }).click();
    texts.set(name, await page.locator('.start-connect pre').innerText());
  }
  return texts;
}

type RunQuery = (query: string) => Promise<unknown>;

/** Runs every example whose client is installed. */
async function runAll(
  t: ExecutionContext,
  texts: ReadonlyMap<string, string>,
  runQuery: RunQuery,
  environment: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const { name, isThere, file, command, prints, rows } of CLIENTS) {
    if (!(await isThere())) {
      process.stdout.write(`SKIPPED: ${t.title}: ${name} is not installed\n`);
      continue;
    }
    const folder = await mkdtemp(join(BUILD, 'example-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, file), texts.get(name) ?? '');
    for (const file of name === 'Go' ? ['go.mod', 'go.sum'] : []) {
      await copyFile(new URL(`pgx/${file}`, SOURCES), join(folder, file));
    }
    const [program, ...args] = command;
    const env = { ...process.env, ...environment };
    const { stdout } = await run(program, args, { cwd: folder, env });
    t.regex(stdout, prints, name);
    t.deepEqual(await runQuery('SELECT count() FROM readings'), [[rows]], name);
    await runQuery('DROP TABLE readings');
  }
}

function asker(server: TestServer, login?: string): RunQuery {
  const headers: Record<string, string> =
    login === undefined ? {} : { Authorization: `Basic ${btoa(login)}` };
  return async (query) => {
    const address = `${server.url}/exec?query=${encodeURIComponent(query)}`;
    const response = await fetch(address, { headers });
    const { dataset, error } = (await response.json()) as { dataset?: unknown; error?: string };
    return dataset ?? error;
  };
}

browserTest('snippets for a new server contain its ports and its initial password', async (t) => {
  t.timeout(WAIT_MS);
  const server = await serverFor(t, []);
  const user = await BrowserUser.arrive(t);
  await user.page.goto(`${server.url}/#start`);
  const texts = await examples(user.page);
  const port = server.pg.split(':').at(-1) ?? '';
  t.true(texts.get('psql')?.includes(`admin:quest@127.0.0.1:${port}/`));
  await runAll(t, texts, asker(server));
  t.deepEqual(user.complaints, []);
});

browserTest('snippets for servers with users contain the user name but no password', async (t) => {
  t.timeout(WAIT_MS);
  const server = await serverFor(t, ['acl.enabled=true', 'acl.admin.password=secret']);
  const admin = asker(server, 'admin:secret');
  await admin("CREATE USER \"ann o'neil\" WITH PASSWORD 'p w$'");
  await admin('GRANT HTTP, PGWIRE, CREATE TABLE TO "ann o\'neil"');
  const ann = await BrowserUser.arrive(t);
  await ann.page.goto(`${server.url}/#start`);
  await ann.signIn("ann o'neil", 'p w$');
  await ann.page.getByText("holds the password of ann o'neil").waitFor();
  const texts = await examples(ann.page);
  t.notRegex([...texts.values()].join(), /p w\$|quest@/);
  await runAll(t, texts, admin, { PGPASSWORD: 'p w$' });
});

browserTest('snippets for an encrypted server make the clients use TLS', async (t) => {
  t.timeout(WAIT_MS);
  const folder = new CertificateFolder();
  t.teardown(() => folder.remove());
  folder.make('server');
  const certificate = folder.file('server.crt');
  const pg = ['pg.tls.enabled=true', `pg.tls.cert.path=${certificate}`];
  const server = await serverFor(t, [
    ...pg,
    `pg.tls.private.key.path=${folder.file('server.key')}`,
  ]);
  const user = await BrowserUser.arrive(t);
  await user.page.goto(`${server.url}/#start`);
  const texts = await examples(user.page);
  t.regex(texts.get('Go') ?? '', /sslmode=require/);
  await runAll(t, texts, asker(server), { NODE_EXTRA_CA_CERTS: certificate });
});

browserTest('snippets for external users contain a token and the table owner group', async (t) => {
  t.timeout(WAIT_MS);
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  provider.addPerson('jo', { groups: ['writers'] });
  const here = async (...set: readonly string[]): Promise<TestServer> => {
    const server = await serverFor(t, [
      ...['acl.enabled=true', 'acl.admin.password=secret'],
      ...provider.settings(...set),
    ]);
    await provider.allowRedirects([`${server.url}/`]);
    const admin = asker(server, 'admin:secret');
    await admin("CREATE GROUP crew WITH EXTERNAL ALIAS 'writers'");
    await admin('GRANT HTTP, PGWIRE, CREATE TABLE TO crew');
    return server;
  };
  const arrive = async (server: TestServer): Promise<BrowserUser> => {
    const jo = await BrowserUser.arrive(t);
    await jo.page.goto(`${server.url}/#start`);
    await jo.page.locator('[data-action=sso]').click();
    await jo.logIn('jo');
    await jo.isIn('jo');
    return jo;
  };
  const server = await here('acl.oidc.pg.token.as.password.enabled=true');
  const jo = await arrive(server);
  for (const visit of ['signed on', 'after a reload']) {
    await jo.page.getByText('holds an access token from your identity provider').waitFor();
    const texts = await examples(jo.page);
    t.true(texts.get('psql')?.includes('//_sso@127.0.0.1:'), visit);
    t.notRegex([...texts.values()].join(), /\bjo\b/, visit);
    if (visit === 'signed on') {
      const ours = new Map(
        [...texts].map(([name, text]) => [name, text.replaceAll('your_group', 'crew')]),
      );
      const { access } = await provider.token('jo');
      await runAll(t, ours, asker(server, 'admin:secret'), { PGPASSWORD: access });
    }
    // Once the first rows had arrived, the page opened their table.
    await jo.page.goto(`${server.url}/?again#start`);
    await jo.isIn('jo');
  }
  const closed = await here();
  const other = await arrive(closed);
  await other.page.getByText('does not accept tokens on this interface').waitFor();
  t.deepEqual(await other.page.getByRole('tab').allInnerTexts(), ['curl']);
});

browserTest('without the wire protocol only HTTP snippets are offered', async (t) => {
  const server = await serverFor(t, ['pg.enabled=false']);
  const user = await BrowserUser.arrive(t);
  await user.page.goto(`${server.url}/#start`);
  await user.page.getByText('disabled', { exact: true }).waitFor();
  t.deepEqual(await user.page.getByRole('tab').allInnerTexts(), ['curl']);
});
