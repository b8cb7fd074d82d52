/** Keys for notebooks and workspaces, which are stored for users who log in. */
import { bool, key, OWN, RELOAD, size } from './key.js';
import { parsePositive } from './units.js';

export const NOTEBOOK_KEYS = {
  notebooksEnabled: bool(
    'notebooks.enabled',
    true,
    'notebooks of the console are kept in the database for those who log in',
    OWN,
  ),
  notebooksSize: size('notebooks.max.size', '4M', 'the text of one notebook', OWN),
  notebooksCount: key(
    'notebooks.max.count',
    'integer',
    '1000',
    parsePositive,
    'most notebooks of one user',
    { ...OWN, ...RELOAD },
  ),
  notebooksVersions: key(
    'notebooks.max.versions',
    'integer',
    '50',
    parsePositive,
    'most versions of a notebook; older ones go, and so do those beyond 4 MiB, compressed',
    { ...OWN, ...RELOAD },
  ),
  notebooksUserSize: size(
    'notebooks.max.user.size',
    '16M',
    'what the notebooks of one user take with their versions, compressed',
    { ...OWN, ...RELOAD },
  ),
  notebooksTotalSize: size(
    'notebooks.max.total.size',
    '64M',
    'what the notebooks of all users take with their versions, compressed; held in memory',
    { ...OWN, ...RELOAD },
  ),
  workspaceUserSize: size(
    'workspace.max.user.size',
    '4M',
    'tabs, drafts and query log of one console user who logs in, compressed',
    { ...OWN, ...RELOAD },
  ),
  workspaceTotalSize: size(
    'workspace.max.total.size',
    '64M',
    'tabs, drafts and query logs of all console users who log in, compressed; held in memory',
    { ...OWN, ...RELOAD },
  ),
};
