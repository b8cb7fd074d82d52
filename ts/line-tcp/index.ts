/** The line protocol over TCP: the listener, connections and keys. */
export { KeyFileError } from './key-store.js';
export { hasSenderKeys, lineTcpRefusal } from './listener-policy.js';
export { type RunningLineTcp, startLineTcp } from './server.js';
