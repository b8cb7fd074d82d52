/** Keys of the notebooks that are kept for those who log in. */
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
};
