/** Tools for agents, built on the server's sessions. Loaded with the first request of an agent. */
export { endSession, exchange, type Exchange } from './exchange.js';
