// Generates the index of the decision records from each record's header: status, date, area.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from './steps.mjs';

const FOLDER = join(root, 'docs', 'decisions');
const FIELDS = ['status', 'date', 'area'];
const INTRODUCTION = `# Decisions

These records tell contributors why the project is built as it is. Each one states the problem,
the options and the choice. The pages of each area describe how the current code works. A
replaced record stays in the list and names its successor. Numbers are never reused.
\`npm run generate\` writes this page from the records.
`;

/** Returns the records in numeric order. Throws if a record lacks a header field. */
export function decisions() {
  const names = readdirSync(FOLDER).filter((name) => /^\d{4}-.*\.md$/.test(name));
  return names.sort().map((name) => {
    const text = readFileSync(join(FOLDER, name), 'utf8');
    const [, front = ''] = text.match(/^---\n([^]*?)\n---\n/) ?? [];
    const pairs = front.split('\n').map((line) => line.split(/: (.*)/, 2));
    const record = { name, title: text.match(/^# (.*)$/m)?.[1], ...Object.fromEntries(pairs) };
    const missing = FIELDS.filter((field) => record[field] === undefined);
    if (missing.length > 0) {
      throw new Error(`docs/decisions/${name} does not say its ${missing.join(', ')}`);
    }
    return record;
  });
}

/** Returns the index page, grouped by area. */
export function decisionsDocument() {
  const records = decisions();
  const areas = [...new Set(records.map(({ area }) => area))].sort();
  const sections = areas.map((area) => {
    const lines = records
      .filter((record) => record.area === area)
      .map(({ name, title, date, status }) => `| [${title}](${name}) | ${date} | ${status} |\n`);
    const heading = area.charAt(0).toUpperCase() + area.slice(1);
    return `## ${heading}\n\n| Decision | Date | Status |\n|---|---|---|\n${lines.join('')}`;
  });
  return [INTRODUCTION, ...sections].join('\n');
}
