/** Notebooks of the console, kept in the database for those who log in. */
export { NotebookRefusal, type Person, type Share } from './model.js';
export { NotebookStore, type NotebookLimits } from './store.js';
