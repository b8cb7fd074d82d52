/** The keys that the help dialog lists. It loads this module when it opens. */
import { texts } from '../texts.js';

interface Shortcut {
  readonly keys: string;
  readonly does: string;
}

export const SHORTCUTS: readonly Shortcut[] = [
  { keys: 'Ctrl+Enter, F9', does: texts.shortcuts.run },
  { keys: 'Ctrl+Shift+Enter', does: texts.shortcuts.runAll },
  { keys: 'Alt+K', does: texts.shortcuts.cancel },
  { keys: 'F8, Shift+F8', does: texts.shortcuts.problems },
  { keys: 'Alt+Shift+F', does: texts.shortcuts.format },
  { keys: 'Alt+Z', does: texts.shortcuts.wrap },
  { keys: 'Ctrl+/, Alt+Shift+A', does: texts.shortcuts.comment },
  { keys: 'Ctrl+F, F3, Shift+F3', does: texts.shortcuts.find },
  { keys: 'Ctrl+K', does: texts.shortcuts.palette },
  { keys: 'Alt+L, Alt+Shift+L', does: texts.shortcuts.copyLink },
  { keys: 'Alt+T, Alt+W, Alt+Shift+T', does: texts.shortcuts.tabs },
  { keys: 'Alt+PgUp, Alt+PgDn', does: texts.shortcuts.changeTab },
  { keys: 'Alt+E', does: texts.common.showQueryPlan },
  { keys: 'Alt+1 … Alt+4', does: texts.shortcuts.views },
  { keys: 'F6, Shift+F6', does: texts.shortcuts.regions },
  { keys: 'F2', does: texts.shortcuts.gridAndEditor },
  {
    keys: texts.shortcuts.moveKeys,
    does: texts.shortcuts.move,
  },
  { keys: 'Shift+Arrows, Ctrl+A', does: texts.shortcuts.selectCells },
  {
    keys: 'Ctrl+C, Ctrl+Shift+C',
    does: texts.shortcuts.copyCells,
  },
  { keys: 'Enter, Escape', does: texts.shortcuts.inspect },
  { keys: texts.shortcuts.crosshairKeys, does: texts.shortcuts.crosshair },
  { keys: '/, Ctrl+B', does: texts.shortcuts.arrangeColumns },
  { keys: 'Shift+F10', does: texts.shortcuts.columnMenu },
  {
    keys: 'Enter, Shift+Enter',
    does: texts.shortcuts.tree,
  },
  { keys: 'Shift+F10', does: texts.shortcuts.tableMenu },
  { keys: 'Escape, Tab', does: texts.shortcuts.leaveEditor },
  { keys: '+, -, <, >, 0', does: texts.shortcuts.zoom },
  { keys: 'Ctrl+Z, Ctrl+Shift+Z', does: texts.shortcuts.undo },
  { keys: 'Ctrl+S', does: texts.shortcuts.save },
  { keys: 'Alt+Up, Alt+Down', does: texts.shortcuts.moveCell },
  { keys: texts.shortcuts.rangeKeys, does: texts.shortcuts.ranges },
  { keys: '?', does: texts.shortcuts.help },
];
