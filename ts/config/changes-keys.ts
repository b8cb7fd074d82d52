/** Keys for change feeds. */
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
  changesRetention: duration(
    'changes.retention',
    '7d',
    'a table that no feed follows any more is let go after this time: positions of before are lost',
    { ...OWN, engine: 'followedForMs' },
  ),
  changesMemory: size(
    'changes.memory',
    '0',
    'bytes of the latest commits to followed tables that memory keeps: so far back feeds report ' +
      'commit by commit, before that in stretches of time; 0 is a 64th of the memory, 64 MiB ' +
      'at most',
    { ...OWN, engine: 'recentChangesBytes' },
  ),
};
