/** The HTTP interface. */
export { type RunningHttp, startHttp, startMinimalHttp } from './server.js';
export { type HttpServices, type WireEndpoint } from './route.js';
export { loadStaticFiles } from './response/static-files.js';
