/**
 * The documentation site. `npm run docs` builds it into build/docs; every page of this folder is in
 * the sidebar, except the decision records, which have an index page of their own.
 */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitepress';

import { renderGrammar } from './grammar.mjs';

const FOLDER = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** The sidebar: each section has a list of pages, given by path and title. */
const SECTIONS = {
  'Get started': [
    ['get-started/install', 'Install'],
    ['get-started/first-hour', 'The first hour'],
    ['get-started/first-dashboard', 'The first dashboard'],
    ['embedded', 'Embed in Node.js'],
    ['comparison', 'Comparison'],
    ['migration/questdb', 'Move from QuestDB'],
    ['migration/influxdb', 'Move from InfluxDB'],
    ['migration/timescaledb', 'Move from TimescaleDB'],
  ],
  'Import and ingest': [
    ['connect/ingestion', 'Send rows from official clients'],
    ['connect/telegraf', 'Telegraf'],
    ['connect/kafka-connect', 'Kafka Connect'],
    ['line-protocol', 'Line protocol'],
    ['qwp', 'Columnar protocol (QWP)'],
    ['copy', 'COPY'],
    ['read-csv', 'CSV and JSON files'],
    ['read-parquet', 'Parquet files'],
  ],
  Query: [
    ['time-series', 'Time series'],
    ['joins', 'Joins and sub-queries'],
    ['materialized-views', 'Materialized views'],
    ['live-views', 'Live views'],
    ['changes', 'Change feeds'],
    ['console', 'Console'],
    ['notebooks', 'Notebooks and dashboards'],
    ['mcp', 'AI agents'],
  ],
  'SQL reference': [
    ['sql/README', 'Overview'],
    ['sql/lexical', 'Names and literals'],
    ['sql/data-types', 'Data types'],
    ['sql/expressions', 'Expressions and operators'],
    ['sql/time-intervals', 'Time intervals'],
    ['sql/select', 'SELECT'],
    ['sql/with', 'WITH and DECLARE'],
    ['sql/from', 'FROM and joins'],
    ['sql/sample-by', 'SAMPLE BY and LATEST ON'],
    ['sql/pivot', 'PIVOT'],
    ['sql/windows', 'Window functions'],
    ['sql/insert', 'INSERT'],
    ['sql/update', 'UPDATE'],
    ['sql/delete', 'DELETE'],
    ['sql/copy', 'COPY'],
    ['sql/create-table', 'CREATE TABLE'],
    ['sql/alter-table', 'ALTER TABLE'],
    ['sql/drop-table', 'DROP, TRUNCATE, RENAME'],
    ['sql/create-index', 'CREATE INDEX and others'],
    ['sql/view', 'CREATE VIEW'],
    ['sql/materialized-view', 'CREATE MATERIALIZED VIEW'],
    ['sql/live-view', 'CREATE LIVE VIEW'],
    ['sql/users', 'Users and groups'],
    ['sql/grant', 'GRANT and REVOKE'],
    ['sql/show', 'SHOW and DESCRIBE'],
    ['sql/explain', 'EXPLAIN'],
    ['sql/transactions', 'Transactions'],
    ['sql/set', 'SET, RESET, DISCARD'],
    ['sql/prepare', 'PREPARE, EXECUTE'],
    ['sql/cursors', 'Cursors'],
    ['sql/listen', 'LISTEN and NOTIFY'],
    ['sql/backup', 'CHECKPOINT and BACKUP'],
    ['sql/maintenance', 'Maintenance'],
  ],
  Connect: [
    ['clients', 'Tested clients'],
    ['connect/python', 'Python'],
    ['connect/java', 'Java'],
    ['connect/javascript', 'JavaScript'],
    ['connect/go', 'Go'],
    ['connect/rust', 'Rust'],
    ['connect/dotnet-odbc-bi', '.NET, ODBC and BI tools'],
    ['connect/ruby-php-perl', 'Ruby, PHP and Perl'],
    ['connect/psql-and-admin', 'psql and admin tools'],
    ['connect/grafana', 'Grafana'],
    ['connect/superset', 'Superset'],
    ['connect/dbt-and-migrations', 'dbt and migrations'],
  ],
  Operate: [
    ['guides/deploy', 'Deploy'],
    ['guides/operate', 'Set up and operate'],
    ['guides/monitor', 'Monitor'],
    ['guides/upgrade', 'Upgrade'],
    ['guides/limits', 'Limits and tuning'],
    ['security', 'Security'],
    ['asvs', 'OWASP ASVS'],
    ['access-control', 'Access control'],
    ['encryption', 'Encryption'],
    ['backup-and-damage', 'Backup and damage'],
    ['storage-policies', 'Storage policies'],
    ['metrics', 'Metrics'],
    ['reliability', 'Reliability'],
  ],
  Reference: [
    ['configuration', 'Configuration'],
    ['functions', 'Functions'],
    ['errors', 'Errors'],
    ['sql-coverage', 'SQL coverage'],
    ['dialect-differences', 'Differences from QuestDB'],
    ['http', 'HTTP interface'],
    ['wire-protocol', 'PostgreSQL wire protocol'],
    ['benchmarks', 'Benchmarks'],
  ],
  Internals: [
    ['architecture', 'Architecture'],
    ['life-of-a-query', 'Life of a query'],
    ['life-of-a-row', 'Life of a row'],
    ['repeated-statements', 'Repeated statements'],
    ['views', 'Views'],
    ['format', 'Storage format'],
    ['glossary', 'Glossary'],
    ['sql-correctness', 'Correctness of SQL'],
    ['contributing', 'Contributing'],
    ['decisions/README', 'Decisions'],
  ],
};

const pages = Object.values(SECTIONS)
  .flat()
  .map(([page]) => `${page}.md`);
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.md') && !/^(index\.md$|decisions.\d|\.vitepress)/.test(file),
);
const unlisted = files.filter((file) => !pages.includes(file.replaceAll(path.sep, '/')));
if (unlisted.length > 0) {
  throw new Error(`pages without a place in the sidebar: ${unlisted.join(', ')}`);
}

/** Renders HTML in the pages as text, and links to files of the repository as plain text. */
function configureMarkdown(md) {
  md.set({ html: false });
  renderGrammar(md, FOLDER);
  md.core.ruler.push('repository-links', ({ tokens }) => {
    for (const { children } of tokens) {
      let inside = false;
      for (const token of children ?? []) {
        inside ||=
          token.type === 'link_open' &&
          /^((\.\.\/)+(crates|native|scripts|test|ts)|flame-graphs)\b/.test(
            token.attrGet('href') ?? '',
          );
        if (inside && (token.type === 'link_open' || token.type === 'link_close')) {
          inside = token.type === 'link_open';
          Object.assign(token, { type: 'text', tag: '', nesting: 0, content: '' });
        }
      }
    }
  });
}

export default defineConfig({
  title: 'Tidemark',
  description: 'Documentation of the Tidemark time-series database',
  outDir: '../build/docs',
  cacheDir: '../build/docs-cache',
  cleanUrls: true,
  // Ignored because readers of the site do not have a local server running.
  ignoreDeadLinks: 'localhostLinks',
  markdown: { config: configureMarkdown },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'SQL', link: '/sql/README' },
      { text: 'Reference', link: '/configuration' },
      { text: 'Internals', link: '/architecture' },
    ],
    sidebar: Object.entries(SECTIONS).map(([text, entries]) => ({
      text,
      collapsed: text === 'SQL reference',
      items: entries.map(([page, title]) => ({
        text: title,
        link: `/${page}`,
      })),
    })),
  },
});
