/**
 * CSV on its way in: detection of the text's shape, the schema part, the import itself and its
 * two answers. Knows the engine's appender, nothing of HTTP: `ts/http/imp` hands it the parts of
 * the request and sends what it returns.
 */
export { inflatesTooFar } from './bytes/inflation.js';
export { Room } from './bytes/room.js';
export { importCsv, importText } from './import.js';
export { ImportError } from './import-error.js';
export { cleanTableName } from './names.js';
export type { ImportReport } from './answers.js';
export type { ImportSchema } from './schema-part.js';
export type { ImportPart } from './import.js';
export { proposeImport } from './proposal.js';
export { readImportParameters } from './parameters.js';
export { TextFiles } from './text-files.js';
