/**
 * Imports: detection of the CSV structure, the schema part, the import itself and its two response
 * formats. The line protocol and the columnar protocol are in `protocols`. This module uses the
 * engine's appenders and is independent of HTTP: `ts/http/routes` passes in the request bytes and
 * sends the result.
 */
export { isEncoding } from './bytes/encoding.js';
export { inflatesTooFar } from './bytes/inflation.js';
export { FreeSpace } from './bytes/free-space.js';
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
export { isDelimiter, readImportParameters } from './parameters.js';
export { TextFiles } from './text-files.js';
