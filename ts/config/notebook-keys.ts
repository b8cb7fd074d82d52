/** Configuration keys for notebooks and workspaces, which are stored for users who log in. */
import { bool, key, OWN, RELOAD, size } from './key.js';
import { parsePositive } from './units.js';

export const NOTEBOOK_KEYS = {
  notebooksEnabled: bool(
    'notebooks.enabled',
    true,
    'store console notebooks in the database for users who log in',
    OWN,
  ),
  notebooksSize: size('notebooks.max.size', '4M', 'maximum size of a notebook', OWN),
  notebooksCount: key(
    'notebooks.max.count',
    'integer',
    '1000',
    parsePositive,
    'maximum number of notebooks per user',
    { ...OWN, ...RELOAD },
  ),
  notebooksVersions: key(
    'notebooks.max.versions',
    'integer',
    '50',
    parsePositive,
    'maximum number of versions per notebook; older versions are deleted, also if all versions ' +
      'exceed 4 MiB compressed',
    { ...OWN, ...RELOAD },
  ),
  notebooksUserSize: size(
    'notebooks.max.user.size',
    '16M',
    'maximum total compressed size of the notebooks of a user, including versions',
    { ...OWN, ...RELOAD },
  ),
  notebooksTotalSize: size(
    'notebooks.max.total.size',
    '64M',
    'maximum total compressed size of the notebooks of all users, including versions; kept in ' +
      'memory',
    { ...OWN, ...RELOAD },
  ),
  workspaceUserSize: size(
    'workspace.max.user.size',
    '4M',
    'maximum compressed size of the tabs, drafts and query log of a logged-in console user',
    { ...OWN, ...RELOAD },
  ),
  workspaceTotalSize: size(
    'workspace.max.total.size',
    '64M',
    'maximum total compressed size of the tabs, drafts and query logs of all users; kept in memory',
    { ...OWN, ...RELOAD },
  ),
};
