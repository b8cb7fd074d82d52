/**
 * The PostgreSQL wire protocol. Knows messages, logins and connections; statements take the one
 * path of `ts/session`, and rows are bytes made by the engine.
 */
export { type RunningPgWire, startPgWire } from './server.js';
