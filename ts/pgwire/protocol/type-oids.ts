/** Maps the engine's type names to the protocol's type OIDs. */
import type { ResultColumn } from '../../session/index.js';
import { type FieldDescription, noData, rowDescription } from './server-messages.js';

const Oid = {
  Bool: 16,
  Bytea: 17,
  Char: 18,
  Name: 19,
  Int8: 20,
  Int2: 21,
  Int4: 23,
  Text: 25,
  Oid: 26,
  Xid: 28,
  Json: 114,
  Float4: 700,
  Float8: 701,
  Unknown: 705,
  BoolArray: 1000,
  NameArray: 1003,
  Int2Array: 1005,
  Int4Array: 1007,
  TextArray: 1009,
  VarcharArray: 1015,
  Int8Array: 1016,
  Float4Array: 1021,
  Float8Array: 1022,
  OidArray: 1028,
  Bpchar: 1042,
  Varchar: 1043,
  Date: 1082,
  Timestamp: 1114,
  TimestampArray: 1115,
  DateArray: 1182,
  Timestamptz: 1184,
  Interval: 1186,
  TimestamptzArray: 1185,
  Numeric: 1700,
  Uuid: 2950,
  UuidArray: 2951,
} as const;

type Shape = readonly [oid: number, size: number];

const SHAPES: Readonly<Record<string, Shape>> = {
  BOOLEAN: [Oid.Bool, 1],
  BYTE: [Oid.Int2, 2],
  SHORT: [Oid.Int2, 2],
  CHAR: [Oid.Bpchar, -1],
  INT: [Oid.Int4, 4],
  LONG: [Oid.Int8, 8],
  FLOAT: [Oid.Float4, 4],
  DOUBLE: [Oid.Float8, 8],
  DATE: [Oid.Timestamp, 8],
  TIMESTAMP: [Oid.Timestamp, 8],
  TIMESTAMP_NS: [Oid.Timestamp, 8],
  UUID: [Oid.Uuid, 16],
  BINARY: [Oid.Bytea, -1],
  ARRAY: [Oid.Float8Array, -1],
  DECIMAL: [Oid.Numeric, -1],
  PERIOD: [Oid.Interval, 16],
};

/** Parameter array types; the engine parses their text form. */
const ARRAYS: Readonly<Record<string, number>> = {
  'BOOLEAN[]': Oid.BoolArray,
  'NAME[]': Oid.NameArray,
  'SHORT[]': Oid.Int2Array,
  'INT[]': Oid.Int4Array,
  'LONG[]': Oid.Int8Array,
  'OID[]': Oid.OidArray,
  'TEXT[]': Oid.TextArray,
  'VARCHAR[]': Oid.VarcharArray,
  'TIMESTAMP[]': Oid.TimestampArray,
  'UUID[]': Oid.UuidArray,
};

/** Offset that PostgreSQL adds to type modifiers, for a 4-byte header. */
const HEADER = 4;
/** CHAR is `character(1)`. */
const CHAR_MODIFIER = 1 + HEADER;

function shapeOf(type: string): Shape {
  const bare = /^[A-Z0-9_]+/i.exec(type)?.[0].toUpperCase() ?? '';
  if (type.endsWith('[]')) {
    return [ARRAYS[type] ?? Oid.Float8Array, -1];
  }
  // Clients receive symbols, strings, addresses, geohashes and all future types as text.
  return SHAPES[bare] ?? [Oid.Varchar, -1];
}

/** Sizes of types that occur only in the catalog. */
const CATALOG_SIZES: Readonly<Record<number, number>> = {
  [Oid.Char]: 1,
  [Oid.Name]: 64,
  [Oid.Oid]: 4,
  [Oid.Xid]: 4,
};

function catalogShape(oid: number): Shape {
  return [oid, CATALOG_SIZES[oid] ?? -1];
}

export function oidOf(type: string): number {
  return shapeOf(type)[0];
}

/**
 * Type modifier. For DECIMAL, it has the precision in the upper 16 bits and the scale in the lower
 * 16 bits, plus the four header bytes.
 */
function modifierOf({ type, source }: ResultColumn, oid: number): number {
  if (oid === Oid.Bpchar) {
    return CHAR_MODIFIER;
  }
  if (source !== undefined) {
    return source.modifier;
  }
  const [, precision, scale] = /^DECIMAL\((\d+),\s*(\d+)\)$/i.exec(type) ?? [];
  return precision === undefined ? -1 : ((Number(precision) << 16) | Number(scale)) + HEADER;
}

export function describeField(
  column: ResultColumn,
  index: number,
  format: number,
): FieldDescription {
  const [oid, size] = column.oid === undefined ? shapeOf(column.type) : catalogShape(column.oid);
  return {
    name: column.name,
    table: column.source?.table ?? 0,
    column: column.source?.number ?? index + 1,
    oid,
    size,
    modifier: modifierOf(column, oid),
    // Binary data has no text form, so it is always sent and described as binary.
    format: oid === Oid.Bytea ? 1 : format,
  };
}

/**
 * The last description for each column list. It is cached because prepared statements are described
 * repeatedly.
 */
const described = new WeakMap<
  readonly ResultColumn[],
  { readonly formats: string; readonly bytes: Buffer }
>();

/**
 * Returns the description of a statement's rows, or NoData if it has no columns. Columns without a
 * specified format are sent as text.
 */
export function describeRows(
  { columns }: { readonly columns: readonly ResultColumn[] },
  formats: readonly number[],
): Buffer {
  if (columns.length === 0) {
    return noData();
  }
  const key = formats.join();
  const known = described.get(columns);
  if (known?.formats === key) {
    return known.bytes;
  }
  const fields = columns.map((column, index) => describeField(column, index, formats[index] ?? 0));
  const bytes = rowDescription(fields);
  described.set(columns, { formats: key, bytes });
  return bytes;
}

const DECLARED: Readonly<Record<number, string>> = {
  [Oid.Bool]: 'BOOLEAN',
  [Oid.Bytea]: 'BINARY',
  [Oid.Int8]: 'LONG',
  [Oid.Int2]: 'SHORT',
  [Oid.Int4]: 'INT',
  [Oid.Text]: 'VARCHAR',
  [Oid.Json]: 'VARCHAR',
  [Oid.Float4]: 'FLOAT',
  [Oid.Float8]: 'DOUBLE',
  [Oid.Bpchar]: 'VARCHAR',
  [Oid.Varchar]: 'VARCHAR',
  [Oid.Date]: 'TIMESTAMP',
  [Oid.Timestamp]: 'TIMESTAMP',
  [Oid.Timestamptz]: 'TIMESTAMP',
  [Oid.Uuid]: 'UUID',
  [Oid.Name]: 'VARCHAR',
  [Oid.Numeric]: 'DECIMAL',
  [Oid.Interval]: 'PERIOD',
  [Oid.Oid]: 'INT',
  ...Object.fromEntries(Object.entries(ARRAYS).map(([name, oid]) => [oid, name])),
  [Oid.DateArray]: 'TIMESTAMP[]',
  [Oid.TimestamptzArray]: 'TIMESTAMP[]',
};

/** Parameter types by their names in SQL. */
const NAMED: ReadonlyMap<string, number> = new Map(
  Object.entries<number>({
    bool: Oid.Bool,
    boolean: Oid.Bool,
    bytea: Oid.Bytea,
    binary: Oid.Bytea,
    smallint: Oid.Int2,
    int2: Oid.Int2,
    short: Oid.Int2,
    int: Oid.Int4,
    int4: Oid.Int4,
    integer: Oid.Int4,
    bigint: Oid.Int8,
    int8: Oid.Int8,
    long: Oid.Int8,
    real: Oid.Float4,
    float4: Oid.Float4,
    float: Oid.Float4,
    double: Oid.Float8,
    'double precision': Oid.Float8,
    float8: Oid.Float8,
    numeric: Oid.Numeric,
    decimal: Oid.Numeric,
    char: Oid.Bpchar,
    character: Oid.Bpchar,
    bpchar: Oid.Bpchar,
    varchar: Oid.Varchar,
    'character varying': Oid.Varchar,
    text: Oid.Text,
    string: Oid.Text,
    symbol: Oid.Text,
    name: Oid.Name,
    json: Oid.Json,
    date: Oid.Date,
    timestamp: Oid.Timestamp,
    'timestamp without time zone': Oid.Timestamp,
    timestamptz: Oid.Timestamptz,
    'timestamp with time zone': Oid.Timestamptz,
    interval: Oid.Interval,
    uuid: Oid.Uuid,
    oid: Oid.Oid,
    unknown: Oid.Unknown,
  }),
);

/** Array types by the OID of their elements. */
const ARRAYS_OF: Readonly<Record<number, number>> = {
  [Oid.Bool]: Oid.BoolArray,
  [Oid.Int2]: Oid.Int2Array,
  [Oid.Int4]: Oid.Int4Array,
  [Oid.Int8]: Oid.Int8Array,
  [Oid.Float4]: Oid.Float4Array,
  [Oid.Float8]: Oid.Float8Array,
  [Oid.Text]: Oid.TextArray,
  [Oid.Varchar]: Oid.VarcharArray,
  [Oid.Timestamp]: Oid.TimestampArray,
  [Oid.Timestamptz]: Oid.TimestamptzArray,
  [Oid.Date]: Oid.DateArray,
  [Oid.Uuid]: Oid.UuidArray,
};

export function isIntegerArray(oid: number): boolean {
  return [Oid.Int2Array, Oid.Int4Array, Oid.Int8Array, Oid.OidArray].some((one) => one === oid);
}

/** OID of a type that SQL text names; `undefined` if parameters cannot have the type. */
export function namedOid(name: string, isArray: boolean): number | undefined {
  const oid = NAMED.get(name.toLowerCase());
  return isArray && oid !== undefined ? ARRAYS_OF[oid] : oid;
}

/** The engine's type for a parameter's declared type; `null` to infer it. */
export function declaredType(oid: number): string | null {
  return DECLARED[oid] ?? null;
}
