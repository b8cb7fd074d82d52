/** What the servers of all protocols do alike with their connections. */
export { busyPoll, type Pace } from './busy-poll.js';
