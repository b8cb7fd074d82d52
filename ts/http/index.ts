/** The HTTP interface. */
export { createApplication, type RunningHttp, startHttp, startMinimalHttp } from './server.js';
export { type HttpServices } from './route.js';
export { loadStaticFiles, type StaticFile, type StaticFiles } from './static-files.js';
