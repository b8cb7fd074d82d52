/** Console data that is stored in the database for users who log in: notebooks and workspaces. */
export { NotebookRefusal, type Person, type Share } from './model.js';
export { NotebookStore, type NotebookLimits } from './store.js';
export { WorkspaceStore, type WorkspaceChanges } from './workspaces.js';
