/** State of the import page: dropped files, and whether an import is running. */
import { signal } from '../model/signal.js';

export const importing = signal(false);
/** Files dropped anywhere on the console that the import page has not picked up yet. */
export const dropped = signal<readonly File[]>([]);
