/** The HTTP interface. */
export { type RunningHttp, startHttp, startMinimalHttp } from './server.js';
export { type HttpServices, type StatusSource, type WireEndpoint } from './route.js';
export { httpPaths } from './paths.js';
export { STATUS_PATH } from './routes/service.js';
export { loadStaticFiles } from './response/static-files.js';
