/** Files that wait for the import page, and whether an import is running. */
import { signal } from '../model/signal.js';

export const importing = signal(false);
/** Files dropped anywhere on the page that the import page has not received yet. */
export const dropped = signal<readonly File[]>([]);
