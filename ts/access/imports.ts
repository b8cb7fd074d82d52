/** The permissions that an import requires. */
import type { Access, ImportTarget } from '../session/index.js';
import { refusal } from './model.js';
import { hasPermission } from './setting.js';
import type { Rights } from './store.js';

/**
 * Returns the required accesses. A new table requires CREATE TABLE; replacing a table also requires
 * DROP TABLE. A user who may neither insert nor create tables receives the same response whether or
 * not the table exists.
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
  return mayFill || hasPermission(rights, 'CREATE TABLE')
    ? [{ table: '', columns: [], permission: 'CREATE TABLE' }]
    : fill;
}
