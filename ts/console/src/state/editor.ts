/**
 * Gives commands access to the workspace's editor. The view that contains the editor registers it.
 */
import type { Run, StatementText } from './run.js';

interface Editor {
  readonly focus: () => void;
  readonly format: () => void;
  readonly insert: (text: string) => void;
  readonly forget: (tab: string) => void;
  readonly statementToRun: () => StatementText | undefined;
  readonly statements: () => readonly StatementText[];
  readonly mark: (tab: string, at: number, state: Run['state'], title: string) => void;
  readonly showProblem: (tab: string, offset: number, message: string) => void;
  readonly clearProblem: (tab: string) => void;
  readonly replaceProblem: (text: string) => void;
  readonly goToProblem: (step?: 1 | -1) => void;
}

let registered: Editor | undefined;

export function registerEditor(editor: Editor): void {
  registered = editor;
}

/** Returns the registered editor; `undefined` until the editor's code is loaded. */
export function editor(): Editor | undefined {
  return registered;
}
