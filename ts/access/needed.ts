/**
 * What a change takes at least, read from its words alone: used when it could not be bound, so
 * that the reason tells nothing of objects that are not for the asker to know.
 */
import type { Access } from '../session/index.js';
import type { AlterAction, Tree } from '../sql/index.js';

export function neededAtLeast({ nodes, root }: Partial<Tree>): readonly Access[] {
  const node = root === undefined ? undefined : nodes?.[root];
  switch (node?.kind) {
    case 'AlterTable':
      return node.actions.flatMap((action) => neededBy(node.table.text, action));
    case 'CreateTable':
      return [{ table: '', columns: [], permission: 'CREATE TABLE' }];
    case 'Insert':
      return [{ table: node.table.text, columns: [], permission: 'INSERT' }];
    case 'Delete':
      return [{ table: node.table.text, columns: [], permission: 'DELETE' }];
    case 'Update': {
      const columns = node.assignments.map(([{ text }]) => text);
      return [{ table: node.table.text, columns, permission: 'UPDATE' }];
    }
    default:
      return [];
  }
}

function neededBy(table: string, action: AlterAction): readonly Access[] {
  const on = (permission: string, ...columns: string[]): readonly Access[] => [
    { table, columns, permission },
  ];
  switch (action.action) {
    case 'AddColumn':
      return on('ADD COLUMN');
    case 'DropColumn':
      return on('DROP COLUMN', action.column.text);
    case 'RenameColumn':
      return on('RENAME COLUMN', action.column.text);
    case 'ChangeType':
      return on('ALTER COLUMN TYPE', action.column.text);
    case 'SymbolCapacity':
    case 'SymbolCache':
      return on('ALTER COLUMN CACHE', action.column.text);
    case 'Index':
      return on(action.indexed ? 'ADD INDEX' : 'DROP INDEX', action.column.text);
    case 'Partitions':
      return on(PARTITION_PERMISSIONS[action.change]);
    case 'SquashPartitions':
      return on('VACUUM TABLE');
    case 'SetParameter':
    case 'SetTtl':
      return on('SET TABLE PARAM');
    case 'SetWal':
      return on('SET TABLE TYPE');
    case 'Dedup':
      return on(action.keys.length === 0 ? 'DEDUP DISABLE' : 'DEDUP ENABLE');
    case 'Other':
      // Words without effect: they are refused for what they are, not for what they name.
      return [];
  }
}

const PARTITION_PERMISSIONS = {
  Drop: 'DROP PARTITION',
  Detach: 'DETACH PARTITION',
  Attach: 'ATTACH PARTITION',
  ToParquet: 'SET TABLE PARAM',
  ToNative: 'SET TABLE PARAM',
} as const;
