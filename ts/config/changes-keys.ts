/** Keys of feeds of changes. */
import { duration, integer, OWN, RELOAD, size } from './key.js';

export const CHANGES_KEYS = {
  changesMaxFeeds: integer(
    'changes.max.feeds',
    '256',
    'feeds of changes at once, over all protocols; more are refused',
    { ...OWN, ...RELOAD },
  ),
  changesHeartbeat: duration(
    'changes.heartbeat',
    '15s',
    'a feed without changes says so after this time',
    OWN,
  ),
  changesMemory: size(
    'changes.memory',
    '64M',
    'bytes of the latest commits to followed tables that memory keeps: so far back a feed is told ' +
      'commit by commit, before that in stretches of time',
    { ...OWN, engine: 'recentChangesBytes' },
  ),
};
