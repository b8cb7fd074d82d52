/** Loads the notebook code on first use. */
import { showFailure } from '../page/notices.js';
import type * as Entrances from './templates.js';

type Notebooks = typeof Entrances;

export function withNotebooks(act: (notebooks: Notebooks) => void): void {
  void import('./templates.js').then(act, showFailure);
}
