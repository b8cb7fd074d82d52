/** The time zone in which the console shows timestamps. */
import type { Zone } from '../model/format.js';
import { storedChoice } from './choice.js';

export const [zone, setZone] = storedChoice<Zone>('tidemark.zone', ['utc', 'local']);
