/** The `schema` part of an import: types that the sender declares. */
import { type ColumnType, isNumberType, missingAdapter, parseTypeName } from './column-types.js';
import { ImportError } from './import-error.js';

/** Maximum number of strings per column that represent null. */
const MAX_NULL_TEXTS = 16;

/** Types, keyed by column name in lower case. */
export type ImportSchema = ReadonlyMap<string, ColumnType>;

/**
 * Parses the part. An empty part declares no types, and the last entry for a name wins. With
 * `isoTimes`, times without a pattern are ISO 8601; otherwise they are refused.
 */
export function parseSchemaPart(text: string, isoTimes = false): ImportSchema {
  const schema = new Map<string, ColumnType>();
  if (text.trim() === '') {
    return schema;
  }
  const entries = parseJson(text);
  if (!Array.isArray(entries)) {
    throw new ImportError(isObject(entries) ? 'Unexpected object' : 'Unexpected symbol');
  }
  for (const entry of entries as readonly unknown[]) {
    if (!isObject(entry)) {
      throw new ImportError('Unexpected symbol');
    }
    const { name, type } = readEntry(entry, isoTimes);
    schema.set(name.toLowerCase(), type);
  }
  return schema;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ImportError(describeBrokenJson(text));
  }
}

/** Describes invalid JSON in the wording that clients expect. */
function describeBrokenJson(text: string): string {
  const open: string[] = [];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === '[' || token === '{') {
      open.push(token);
    } else if (token === ']' || token === '}') {
      open.pop();
    }
  }
  const innermost = open.at(-1);
  if (innermost === undefined) {
    return 'Unexpected symbol';
  }
  return innermost === '[' ? 'Unterminated array' : 'Unterminated object';
}

function readEntry(
  entry: Readonly<Record<string, unknown>>,
  isoTimes: boolean,
): { name: string; type: ColumnType } {
  const name = entry['name'];
  const typeName = entry['type'];
  const pattern = entry['pattern'];
  if (typeof name !== 'string' || name === '') {
    throw new ImportError("Missing 'name' property");
  }
  if (typeof typeName !== 'string' || typeName === '') {
    throw new ImportError("Missing 'type' property");
  }
  const type = parseTypeName(typeName);
  if (type === null) {
    throw new ImportError('Invalid type');
  }
  const missing = missingAdapter(type);
  if (missing !== null) {
    throw new ImportError(missing);
  }
  const hasPattern = typeof pattern === 'string' && pattern !== '';
  const isTimestamp = type === 'TIMESTAMP' || type === 'TIMESTAMP_NS';
  if (isTimestamp && !hasPattern && !isoTimes) {
    throw new ImportError('TIMESTAMP format pattern is required');
  }
  const isMark = pattern === ',' || pattern === '.';
  const acceptsPattern =
    hasPattern && (isTimestamp || type === 'DATE' || (isMark && isNumberType(type)));
  const nullTexts = readNullTexts(entry['nullTexts']);
  const nulls = nullTexts === null ? {} : { nullTexts };
  return { name, type: acceptsPattern ? { type, pattern, ...nulls } : { type, ...nulls } };
}

function readNullTexts(value: unknown): readonly string[] | null {
  if (value === undefined) {
    return null;
  }
  const isList = Array.isArray(value) && value.every((text) => typeof text === 'string');
  if (!isList || value.length > MAX_NULL_TEXTS) {
    throw new ImportError(`Invalid 'nullTexts': expected at most ${MAX_NULL_TEXTS} strings`);
  }
  return value;
}
