/** The line protocol over TCP: one listener, its senders, their keys. */
export { KeyFileError } from './key-book.js';
export { hasSenderKeys, lineTcpRefusal } from './need.js';
export { type RunningLineTcp, startLineTcp } from './server.js';
