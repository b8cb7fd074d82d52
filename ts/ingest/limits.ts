/** Limits of imports. */

/** Lines from which structure and types are detected, unless the caller says fewer. */
export const ANALYSED_LINES = 1000;
/** The most bytes read for detection; also the longest line the engine takes. */
export const MAX_SAMPLE_BYTES = 16 * 1024 * 1024;
/** Longest `schema` part. */
export const MAX_SCHEMA_BYTES = 1024 * 1024;
/** Longest name of a table or column, in UTF-8 bytes. */
export const MAX_NAME_BYTES = 127;
