/** Keys for live query results. */
import { OWN, RELOAD, size } from './key.js';

export const LIVE_KEYS = {
  liveAnswerSize: size(
    'live.max.answer.size',
    '4M',
    'one answer of a query that is kept up to date over /live; a larger one is refused',
    { ...OWN, ...RELOAD },
  ),
};
