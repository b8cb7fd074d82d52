/** Files that wait for the import page, and whether an import is running. */
import { signal } from '../model/signal.js';

export const importing = signal(false);
/** Files that were dropped anywhere on the page and wait for the import page. */
export const dropped = signal<readonly File[]>([]);
