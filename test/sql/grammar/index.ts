/** Every numbered item of the language, with example statements. */
import type { Item, Section } from './item.js';
import { LANGUAGE } from './language.js';
import { QUERIES } from './queries.js';
import { STATEMENTS } from './statements.js';

export type { Item } from './item.js';

export const SECTIONS: readonly Section[] = [...LANGUAGE, ...QUERIES, ...STATEMENTS];
export const ITEMS: readonly Item[] = SECTIONS.flatMap(({ items }) => items);
