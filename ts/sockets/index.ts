/** Connection handling that the servers of all protocols share. */
export { busyPoll, type Pace } from './busy-poll.js';
export { Patience, stopReading } from './handoff.js';
export { REFUSED_AT_ONCE, type Slot, type SlotLimits, slotOf, Slots } from './slots.js';
export { stopListening } from './stop-listening.js';
