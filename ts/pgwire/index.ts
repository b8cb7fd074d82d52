/**
 * The PostgreSQL wire protocol: messages, logins and connections. Statements run through
 * `ts/session`, and the engine encodes rows.
 */
export { type RunningPgWire, startPgWire } from './server.js';
