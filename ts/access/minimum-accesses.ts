/**
 * The minimum permissions that a change requires, derived from its syntax alone. They are checked
 * if binding failed, so that the error reveals nothing about objects that the user may not see.
 */
import type { Access } from '../session/index.js';
import type { AlterAction, Tree, ViewKind } from '../sql/index.js';

/** Object kinds, as named in permissions. */
const KINDS: Readonly<Record<ViewKind, string>> = {
  Table: 'TABLE',
  View: 'VIEW',
  MaterializedView: 'MATERIALIZED VIEW',
  LiveView: 'LIVE VIEW',
};

export function minimumAccesses({ nodes, root }: Partial<Tree>): readonly Access[] {
  const node = root === undefined ? undefined : nodes?.[root];
  const on = (permission: string, ...tables: readonly string[]): readonly Access[] =>
    tables.map((table) => ({ table, columns: [], permission }));
  switch (node?.kind) {
    case 'Explain':
      return minimumAccesses({ nodes: nodes ?? [], root: node.statement });
    case 'AlterTable':
      return node.actions.flatMap((action) => accessesOf(node.table.text, action));
    case 'CreateTable':
      return on('CREATE TABLE', '');
    case 'CreateView':
      return node.options.some(({ name }) => name.text === 'ALTER')
        ? on('ALTER VIEW', node.name.text)
        : on(`CREATE ${KINDS[node.what]}`, '');
    case 'AlterView':
      return on('ALTER MATERIALIZED VIEW', node.view.text);
    case 'AlterLiveView':
      return on('RESUME WAL', node.view.text);
    case 'RefreshView':
      return on('REFRESH MATERIALIZED VIEW', node.view.text);
    case 'CompileView':
      return on('COMPILE VIEW', node.view.text);
    case 'Drop':
      return on(`DROP ${KINDS[node.what]}`, ...textsOf(node.names));
    case 'Truncate':
      return on('TRUNCATE TABLE', ...textsOf(node.tables));
    case 'Rename':
      return on('RENAME TABLE', node.table.text);
    case 'Insert':
      return on('INSERT', node.table.text);
    case 'Delete':
      return on('DELETE', node.table.text);
    case 'Update': {
      const columns = node.assignments.map(([{ text }]) => text);
      return [{ table: node.table.text, columns, permission: 'UPDATE' }];
    }
    default:
      return [];
  }
}

function textsOf(names: readonly { readonly text: string }[]): readonly string[] {
  return names.map(({ text }) => text);
}

function accessesOf(table: string, action: AlterAction): readonly Access[] {
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
    case 'NotNull':
    case 'Default':
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
    case 'SetPolicy':
      return on('SET STORAGE POLICY');
    case 'SwitchPolicy':
      return on(action.enabled ? 'ENABLE STORAGE POLICY' : 'DISABLE STORAGE POLICY');
    case 'DropPolicy':
      return on('REMOVE STORAGE POLICY');
    case 'SetWal':
      return on('SET TABLE TYPE');
    case 'AddConstraint':
      return on(CONSTRAINT_PERMISSIONS[action.constraint.constraint]);
    case 'DropConstraint':
      return on('SET TABLE PARAM');
    case 'Dedup':
      return on(action.keys.length === 0 ? 'DEDUP DISABLE' : 'DEDUP ENABLE');
    case 'Other':
      // Syntax that has no effect is rejected before the objects it names are checked.
      return [];
  }
}

const CONSTRAINT_PERMISSIONS = {
  PrimaryKey: 'DEDUP ENABLE',
  Unique: 'SET TABLE PARAM',
  ForeignKey: 'SET TABLE PARAM',
  Check: 'SET TABLE PARAM',
  Index: 'ADD INDEX',
  UniqueIndex: 'ADD INDEX',
} as const;

const PARTITION_PERMISSIONS = {
  Drop: 'DROP PARTITION',
  Detach: 'DETACH PARTITION',
  Attach: 'ATTACH PARTITION',
  ToParquet: 'SET TABLE PARAM',
  ToNative: 'SET TABLE PARAM',
} as const;
