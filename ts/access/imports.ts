/** What an import takes. */
import type { Access, ImportTarget } from '../session/index.js';
import { refusal } from './model.js';
import { holds } from './setting.js';
import type { Rights } from './store.js';

/**
 * A new table takes CREATE TABLE; structure that goes takes as much as dropping the table. A user
 * who may do neither gets the same answer whether the table exists or not.
 */
export function importAccesses(
  rights: Rights,
  { table, creates, overwrites, adds = [] }: ImportTarget,
): readonly Access[] {
  const names = overwrites ? ['INSERT', 'TRUNCATE TABLE', 'DROP TABLE'] : ['INSERT'];
  const fill = names.map((permission) => ({ table, columns: [], permission }));
  if (!creates) {
    const add = { table, columns: [], permission: 'ADD COLUMN' } as const;
    return adds.length === 0 ? fill : [...fill, add];
  }
  const mayFill = rights.all || fill.every((access) => refusal(rights.sets, access) === null);
  return mayFill || holds(rights, 'CREATE TABLE')
    ? [{ table: '', columns: [], permission: 'CREATE TABLE' }]
    : fill;
}
