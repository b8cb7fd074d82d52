/** Configuration keys for change feeds. */
import { duration, integer, OWN, RELOAD, size } from './key.js';

export const CHANGES_KEYS = {
  changesMaxFeeds: integer(
    'changes.max.feeds',
    '256',
    'maximum number of open change feeds across all protocols; further feeds are rejected',
    { ...OWN, ...RELOAD },
  ),
  changesHeartbeat: duration(
    'changes.heartbeat',
    '15s',
    'interval at which an idle change feed sends a heartbeat',
    OWN,
  ),
  changesRetention: duration(
    'changes.retention',
    '7d',
    'how long a table is followed without an open feed; after that, old positions are invalid',
    { ...OWN, engine: 'followedForMs' },
  ),
  changesMemory: size(
    'changes.memory',
    '0',
    'memory for the latest commits to followed tables: feeds report these commit by commit, and ' +
      'earlier commits combined by time range; 0 means 1/64 of the memory, at most ' +
      '64 MiB',
    { ...OWN, engine: 'recentChangesBytes' },
  ),
};
