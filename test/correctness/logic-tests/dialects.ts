/**
 * What the runner needs to know about the public suites: their files, the layout of expected rows,
 * and mechanical rewrites of the suites' statements. Expected results are never rewritten.
 */
import type { Format } from './records.js';
import type { Layout } from './values.js';

export const SUITES = ['tidemark', 'sqlite', 'duckdb', 'datafusion', 'postgres'] as const;
export type SuiteName = (typeof SUITES)[number];

type Rewrite = readonly [pattern: RegExp, replacement: string];

export interface Dialect extends Format {
  readonly files: RegExp;
  readonly layout: Layout;
  readonly rewrites: readonly Rewrite[];
  /** Statements specific to the suite's own database, with the reason. */
  readonly skipped: readonly (readonly [pattern: RegExp, reason: string])[];
}

/** SHORT and BYTE have no null in Tidemark, so small integers of other databases become INT. */
const SMALL_INTEGERS: Rewrite = [/\b(?:TINYINT|SMALLINT|INT1|INT2)\b/gi, 'INT'];

const PROVIDED_BY_DUCKDB = [
  ...['skip_reload', 'notwindows', 'notmingw', 'noforcestorage', 'no_alternative_verify'],
  ...['no_vector_verification', 'vector_size', 'block_size', '64bit', 'no_block_verification'],
  ...['no_latest_storage', 'core_functions', 'longdouble', 'noalternateverify', 'json', 'icu'],
  ...['no_extension_autoloading', 'strinline', 'ram', 'exact_vector_size'],
];

const POSTGRES_OBJECTS = [
  ...['FUNCTION', 'PROCEDURE', 'AGGREGATE', 'OPERATOR', 'CAST', 'TYPE', 'DOMAIN', 'RULE'],
  ...['TRIGGER', 'EVENT', 'LANGUAGE', 'ROLE', 'USER', 'GROUP', 'SCHEMA', 'COLLATION'],
  ...['STATISTICS', 'ACCESS', 'SERVER', 'FOREIGN', 'PUBLICATION', 'SUBSCRIPTION', 'TEXT'],
  ...['CONVERSION', 'TABLESPACE', 'POLICY', 'EXTENSION', 'DATABASE', 'DEFAULT', 'TRANSFORM'],
].join('|');

const NONE: ReadonlySet<string> = new Set();

export const DIALECTS: Readonly<Record<SuiteName, Dialect>> = {
  tidemark: {
    engine: 'tidemark',
    provided: NONE,
    files: /\.slt$/,
    layout: 'rows',
    rewrites: [],
    skipped: [],
  },
  sqlite: {
    // Of the databases that the suite names, only PostgreSQL has 64-bit integers, strict types and
    // standard syntax.
    engine: 'postgresql',
    provided: NONE,
    files: /\.test$/,
    layout: 'values',
    rewrites: [
      [/\bINTEGER\b/gi, 'LONG'],
      [/\b(?:REAL|FLOAT)\b/gi, 'DOUBLE'],
      [/\bTEXT\b/gi, 'VARCHAR'],
    ],
    skipped: [
      [/^\s*PRAGMA\b/i, 'PRAGMA'],
      [/^\s*(?:CREATE|DROP)\s+(?:TEMP\s+)?TRIGGER\b/i, 'triggers'],
    ],
  },
  duckdb: {
    engine: 'duckdb',
    provided: new Set(PROVIDED_BY_DUCKDB),
    files: /\.test$/,
    layout: 'either',
    rewrites: [
      SMALL_INTEGERS,
      [/\b(?:UTINYINT|USMALLINT)\b/gi, 'INT'],
      [/\b(?:UINTEGER|UBIGINT|HUGEINT|UHUGEINT|INT8)\b/gi, 'LONG'],
      [/\bBLOB\b/gi, 'BYTEA'],
      [/\bDATETIME\b/gi, 'TIMESTAMP'],
      [
        /\b(FROM|JOIN|,)\s+range\(\s*(\d+)\s*\)/gi,
        '$1 (SELECT generate_series AS range FROM generate_series(0, $2 - 1))',
      ],
      [
        /\b(FROM|JOIN|,)\s+range\(\s*(-?\d+)\s*,\s*(-?\d+)\s*\)/gi,
        '$1 (SELECT generate_series AS range FROM generate_series($2, $3 - 1))',
      ],
      [/\bCREATE\s+(OR\s+REPLACE\s+)?TEMP\s+TABLE\b/gi, 'CREATE $1TABLE'],
    ],
    skipped: [
      [/^\s*(?:PRAGMA|SET|RESET|LOAD|INSTALL|CALL|EXPLAIN)\b/i, 'settings of the peer'],
      [/^\s*(?:FORCE\s+)?CHECKPOINT\b/i, 'settings of the peer'],
      [/^\s*(?:ATTACH|DETACH|USE|EXPORT|IMPORT)\b/i, 'several databases'],
      [
        /\b(?:duckdb_\w+|pragma_\w+|test_all_types|test_vector_types)\s*\(/i,
        'functions of the peer',
      ],
      [
        /__TEST_DIR__|\{[A-Z_]+\}|'(?:data|test)\/|\bread_(?:csv|parquet|json)\w*\s*\(/i,
        'files of the peer',
      ],
      [/^\s*(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?(?:TEMP\s+)?(?:MACRO|FUNCTION)\b/i, 'macros'],
      [/^\s*(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?(?:TYPE|SCHEMA|SECRET)\b/i, 'types and schemas'],
    ],
  },
  datafusion: {
    engine: 'datafusion',
    provided: NONE,
    files: /\.slt$/,
    layout: 'rows',
    rewrites: [
      SMALL_INTEGERS,
      [/\b(?:INT|INTEGER)\s+UNSIGNED\b/gi, 'LONG'],
      [/\bBIGINT\s+UNSIGNED\b/gi, 'LONG'],
      [/\bSTRING\b/gi, 'VARCHAR'],
    ],
    skipped: [
      [/^\s*(?:SET|RESET|EXPLAIN|SHOW)\b/i, 'settings and plans of the peer'],
      [/^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:UNBOUNDED\s+)?EXTERNAL\b/i, 'files of the peer'],
      [/^\s*COPY\b|'[^']*\.(?:csv|parquet|json|avro|arrow)'/i, 'files of the peer'],
      [/\barrow_(?:cast|typeof|metadata|try_cast|field)\s*\(/i, 'types of Arrow'],
      [/^\s*(?:CREATE|DROP)\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|SCHEMA|DATABASE)\b/i, 'functions'],
    ],
  },
  postgres: {
    engine: 'postgresql',
    provided: NONE,
    files: /\.sql$/,
    layout: 'rows',
    rewrites: [
      [/\b(?:int2|smallint)\b/gi, 'int4'],
      [/\b(CREATE TABLE[^;]*|::\s*|AS\s+)name\b(?=\s*[,)\n])/gi, '$1varchar'],
    ],
    skipped: [
      [/^\s*(?:SET|RESET|EXPLAIN|SHOW|ANALYZE|VACUUM|REINDEX|CLUSTER|LOCK)\b/i, 'settings, plans'],
      [
        new RegExp(
          `^\\s*(?:CREATE|DROP|ALTER)\\s+(?:OR\\s+REPLACE\\s+)?(?:${POSTGRES_OBJECTS})\\b`,
          'i',
        ),
        'objects that are missing here',
      ],
      [
        /^\s*(?:GRANT|REVOKE|SECURITY|COMMENT|DO|CALL|REASSIGN|LOAD|LISTEN|NOTIFY|UNLISTEN)\b/i,
        'rights and procedures',
      ],
      [/\bpg_(?!typeof)\w+|information_schema|\bregclass\b/i, "the peer's catalog"],
    ],
  },
};

export function rewritten(sql: string, { rewrites }: Dialect): string {
  return rewrites.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), sql);
}

/** Returns the reason for skipping a statement; `undefined` if it runs. */
export function whySkipped(sql: string, { skipped }: Dialect): string | undefined {
  const plain = sql.replace(/^(?:\s|--[^\n]*\n|\/\*.*?\*\/)*/s, '');
  return skipped.find(([pattern]) => pattern.test(plain))?.[1];
}
