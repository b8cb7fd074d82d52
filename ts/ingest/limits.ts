/** Limits of imports. */

/** Default number of lines used to detect the structure and types; the caller can lower it. */
export const ANALYSED_LINES = 1000;
/** Maximum bytes that detection reads; this is also the engine's maximum line length. */
export const MAX_SAMPLE_BYTES = 16 * 1024 * 1024;
/** Maximum bytes in the `schema` part. */
export const MAX_SCHEMA_BYTES = 1024 * 1024;
/** Maximum UTF-8 bytes in a table or column name. */
export const MAX_NAME_BYTES = 127;
