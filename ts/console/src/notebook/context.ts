/** Types and helpers shared by the notebook's components. */
import { announce } from '../page/notices.js';
import type { Tab } from '../state/tab.js';
import type { NotebookSync } from '../saved/sync.js';
import type { NotebookDocument } from './document.js';
import type { Cell } from '../cells/model.js';
import type { Refresher } from './refresher.js';
import type { Workspace } from '../state/workspace.js';
import type { Server } from '../state/server.js';
import type { Schema } from '../state/schema.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface NotebookContext {
  readonly workspace: Workspace;
  readonly server: Server;
  readonly schema: Schema;
  readonly tab: Tab;
  readonly document: NotebookDocument;
  readonly refresher: Refresher;
  /** Synchronizes the notebook with the version saved on the server. */
  readonly sync: NotebookSync;
  /** Id of the maximised cell, if any. */
  readonly maximised: () => string | undefined;
  readonly maximise: (id: string | undefined) => void;
}

export interface CellProps<Of extends Cell = Cell> extends NotebookContext {
  readonly cell: Of;
}

/** Moves a cell by `step` positions and keeps the focus on the cell. */
export function move({ document: doc }: NotebookContext, id: string, step: number): void {
  const { cells } = doc.notebook();
  const at = cells.findIndex((cell) => cell.id === id);
  const to = at + step;
  if (to < 0 || to >= cells.length) {
    return;
  }
  doc.change({ kind: 'move', id, to });
  announce(fill(texts.cells.position, { number: to + 1, count: cells.length }));
  document.querySelector<HTMLElement>(`[data-cell="${id}"] .cell-drag`)?.focus();
}
