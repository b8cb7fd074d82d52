/** Import limits. */

/** Default number of lines used to detect the structure and types; the caller can lower it. */
export const ANALYSED_LINES = 1000;
/** Maximum number of bytes that detection reads; also the engine's maximum line length. */
export const MAX_SAMPLE_BYTES = 16 * 1024 * 1024;
/** Maximum size of the `schema` part, in bytes. */
export const MAX_SCHEMA_BYTES = 1024 * 1024;
/** Maximum length of a table or column name, in UTF-8 bytes. */
export const MAX_NAME_BYTES = 127;
