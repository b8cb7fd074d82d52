/** Configuration keys for live query results. */
import { OWN, RELOAD, size } from './key.js';

export const LIVE_KEYS = {
  liveAnswerSize: size(
    'live.max.answer.size',
    '4M',
    'maximum size of a query result over /live; a larger result is rejected',
    { ...OWN, ...RELOAD },
  ),
};
