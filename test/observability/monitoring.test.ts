/** The alert rules and the dashboard: current, valid, and over metrics that a server exports. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';
import { format, resolveConfig } from 'prettier';

import { skip, TOOLS } from '../clients/tools.js';
import { startTestServer } from '../golden/server.js';
import { alertRules, ALERTS, HEALTHY } from './alerts.js';
import { dashboard } from './dashboard.js';

const ROOT = new URL('../../../', import.meta.url);
const RULES = fileURLToPath(new URL('monitoring/tidemark-alerts.yml', ROOT));
const DASHBOARD = fileURLToPath(new URL('monitoring/grafana-dashboard.json', ROOT));

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; h: number };
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

const panels = (dashboard() as { panels: readonly Panel[] }).panels;
const targets = panels.flatMap((panel) => panel.targets ?? []);

/** Replaces Grafana's variables. */
const expressions = targets.map(({ expr }) =>
  expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
);

for (const [file, text, parser] of [
  [RULES, alertRules(), 'yaml'],
  [DASHBOARD, JSON.stringify(dashboard()), 'json'],
] as const) {
  test(`${file.slice(fileURLToPath(ROOT).length)} is up to date`, async (t) => {
    const options = (await resolveConfig(file)) ?? {};
    t.is(
      readFileSync(file, 'utf8'),
      await format(text, { ...options, parser }),
      'npm run generate',
    );
  });
}

/** Metrics that a server exports only later, or that Prometheus itself adds. */
const NAMES = /\b(?:tidemark_\w+|process_\w+)\b/g;

test('panels and alerts use exported metrics, and each metric has a panel', async (t) => {
  const server = await startTestServer({ set: ['metrics.enabled=true', 'http.min.enabled=true'] });
  t.teardown(() => server.stop());
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const samples = new Set([...text.matchAll(/^(\w+)[ {]/gm)].map(([, name = '']) => name));
  const families = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  const used = (all: readonly string[]): Set<string> =>
    new Set(all.flatMap((expr) => [...expr.matchAll(NAMES)].map(([name]) => name)));
  const shown = used(expressions);
  for (const name of [...shown, ...used(ALERTS.map(({ expr }) => expr))]) {
    t.true(samples.has(name), name);
  }
  t.true(families.length > 30);
  for (const [, name = '', kind] of families) {
    t.true(shown.has(kind === 'histogram' ? `${name}_bucket` : name), `no panel shows ${name}`);
  }
});

test('panels have descriptions and unique identifiers, and do not overlap', (t) => {
  t.is(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const { type, title, description, targets: own = [] } of panels) {
    t.is(own.length > 0 && description !== undefined, type !== 'row', title);
    t.is(new Set(own.map(({ refId }) => refId)).size, own.length, title);
  }
  for (const { gridPos: a, id } of panels) {
    t.true(a.x + a.w <= 24);
    for (const { gridPos: b } of panels.filter((other) => other.id > id)) {
      const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      t.true(apart, `panel ${id}`);
    }
  }
});

test('the monitoring guide lists every alert', (t) => {
  const guide = readFileSync(new URL('docs/guides/monitor.md', ROOT), 'utf8');
  for (const { name } of ALERTS) {
    t.true(guide.includes(`\`${name}\``), name);
  }
});

interface Checked {
  readonly errors: readonly string[];
  readonly firing: readonly (readonly string[])[];
}

test('Prometheus accepts the rules, and each alert fires when its condition is met', async (t) => {
  const program = join(TOOLS, 'bin', 'alert-rules');
  if (!existsSync(program)) {
    skip(t, 'not installed: node scripts/setup-tests.mjs');
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-rules-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const cases = [HEALTHY, ...ALERTS.map(({ fires }) => fires)].map((samples) => ({
    load: ['load 1m', ...samples.map((sample) => `  ${sample}`), ''].join('\n'),
    at: '6h',
  }));
  const [INPUT, OUTPUT] = [join(folder, 'in.json'), join(folder, 'out.json')];
  await writeFile(INPUT, JSON.stringify({ expressions, cases }));
  await promisify(execFile)(program, [], { env: { ...process.env, RULES, INPUT, OUTPUT } });
  const { errors, firing } = JSON.parse(await readFile(OUTPUT, 'utf8')) as Checked;
  t.deepEqual(errors, []);
  t.deepEqual(firing[0], [], 'no alert fires for a healthy server');
  for (const [index, { name }] of ALERTS.entries()) {
    t.true(firing[index + 1]?.includes(name), name);
  }
});
