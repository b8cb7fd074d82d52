/** `llms.txt`: a list of the documentation pages for language models. */
import type { Page } from './documents.js';

/** Pages for contributors. */
const BACKGROUND = new Set([
  'architecture.md',
  'benchmarks.md',
  'contributing.md',
  'joins.md',
  'life-of-a-query.md',
  'life-of-a-row.md',
  'reliability.md',
  'sql-correctness.md',
]);

const HEAD = `# Tidemark

> A time-series SQL database that speaks QuestDB's HTTP interface and dialect, and the PostgreSQL
> wire protocol. Agents query it through the Model Context Protocol: docs/mcp.md.
`;

/** Returns the list. Links are relative to the file's location. */
export function llmsText(pages: readonly Page[]): string {
  const clients = pages.filter(({ name }) => name.startsWith('connect/'));
  const background = pages.filter(({ name }) => BACKGROUND.has(name));
  const others = new Set([...clients, ...background]);
  const parts = [
    HEAD,
    section(
      'Documents',
      pages.filter((page) => !others.has(page)),
    ),
    section('Clients', clients),
    section('Optional', background),
  ];
  return parts.filter((part) => part !== '').join('\n');
}

function section(heading: string, pages: readonly Page[]): string {
  const lines = pages.map(({ name, title, summary }) => `- [${title}](docs/${name}): ${summary}\n`);
  return lines.length === 0 ? '' : `## ${heading}\n\n${lines.join('')}`;
}
