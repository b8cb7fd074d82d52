/** Files for the server: those that wait for the import page, and whether one is being sent. */
import { signal } from '../model/signal.js';

export const importing = signal(false);
/** Files that were dropped somewhere on the page, until the import page takes them. */
export const dropped = signal<readonly File[]>([]);
