/**
 * Tools for agents, based on the server's sessions. This module is loaded with an agent's first
 * request.
 */
export { endSession, exchange, type Exchange } from './exchange.js';
