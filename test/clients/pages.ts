/** The fenced blocks of the pages in `docs/connect`, which the tests run. */
import { readFile } from 'node:fs/promises';

import { SOURCES } from './tools.js';

const PAGES = new URL('../../docs/connect/', SOURCES);

/** Returns a page's blocks in one language, in order. */
export async function blocksOf(page: string, language: string): Promise<string[]> {
  const text = await readFile(new URL(`${page}.md`, PAGES), 'utf8');
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))];
  return blocks.map(([, code = '']) => code);
}

/** Replaces each text with its value; throws if the block does not contain it. */
export function adapt(block: string, values: Readonly<Record<string, string>>): string {
  let adapted = block;
  for (const [text, value] of Object.entries(values)) {
    if (!adapted.includes(text)) {
      throw new Error(`'${text}' is not in ${block}`);
    }
    adapted = adapted.replaceAll(text, value);
  }
  return adapted;
}
