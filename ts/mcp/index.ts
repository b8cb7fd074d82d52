/** Tools for agents over the sessions of the server. Loaded with the first request of an agent. */
export { endSession, exchange, type Exchange } from './exchange.js';
