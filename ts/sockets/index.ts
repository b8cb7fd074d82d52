/** Connection handling shared by the servers of all protocols. */
export { busyPoll, type Pace } from './busy-poll.js';
export { Patience, stopReading } from './handoff.js';
export { REFUSED_AT_ONCE, type Slot, type SlotLimits, slotOf, Slots } from './slots.js';
export { stopListening } from './stop-listening.js';
