/** Time zone in which times are shown. */
import type { Zone } from '../model/format.js';
import { keptChoice } from './choice.js';

export const [zone, setZone] = keptChoice<Zone>('tidemark.zone', ['utc', 'local']);
