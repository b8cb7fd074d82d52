/**
 * CSV on its way in: detection of the text's shape, the schema part, the import itself and its
 * two answers; and the paths of lines and of columnar messages (`protocols`). Knows
 * the engine's appenders, nothing of HTTP: `ts/http/routes` hands it the bytes of requests and
 * sends what it returns.
 */
export { isEncoding } from './bytes/encoding.js';
export { inflatesTooFar } from './bytes/inflation.js';
export { Room } from './bytes/room.js';
export { importCsv, importText } from './import.js';
export { ImportError } from './import-error.js';
export { cleanTableName } from './names.js';
export { ColumnFlow, type ColumnSender, MessageError } from './protocols/columns.js';
export type { CommittedRows } from './protocols/commit-rows.js';
export { LineError, writeLines } from './protocols/lines.js';
export { LineStream } from './protocols/line-stream.js';
export type { ImportReport } from './answers.js';
export type { ImportSchema } from './schema-part.js';
export type { ImportPart } from './import.js';
export { proposeImport, tryColumn } from './proposal.js';
export { readImportParameters } from './parameters.js';
export { TextFiles } from './text-files.js';
