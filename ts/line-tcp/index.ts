/** The line protocol over TCP: the listener, connections and keys. */
export { KeyFileError } from './key-book.js';
export { hasSenderKeys, lineTcpRefusal } from './need.js';
export { type RunningLineTcp, startLineTcp } from './server.js';
