/** Time zone in which times are shown. */
import type { Zone } from '../model/format.js';
import { storedChoice } from './choice.js';

export const [zone, setZone] = storedChoice<Zone>('tidemark.zone', ['utc', 'local']);
