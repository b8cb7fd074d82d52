/** COPY, CHECKPOINT, SNAPSHOT and BACKUP. */
import type {
  BackupStatement,
  CopyStatement,
  Name,
  NodeId,
  OptionValue,
} from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';

/** Parses `COPY …`. */
export function parseCopy(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  if (p.atEnd()) {
    p.fail('copy source expected');
  }
  const copy = copyStatement(p);
  const query = copy.copy === 'Export' ? copy.query : null;
  return p.add({ kind: 'Copy', copy }, start, p.lastEnd(), query);
}

function copyStatement(p: Parser): CopyStatement {
  if (p.at('(')) {
    const open = p.start();
    p.advance();
    const query = p.grammar.query(p);
    p.close(open);
    p.expect('TO');
    return { copy: 'Export', table: null, query, ...destination(p) };
  }
  if (p.kind() === TokenKind.String && p.value(1) === 'CANCEL') {
    const id = p.takeName(true);
    p.advance();
    return { copy: 'Cancel', id };
  }
  const table = p.tableName('table name or sub-query expected');
  if (p.take('CANCEL')) {
    return { copy: 'Cancel', id: table };
  }
  if (p.take('TO')) {
    return { copy: 'Export', table, query: null, ...destination(p) };
  }
  p.expect('FROM', "'from' or 'to' expected");
  const file = fileName(p);
  return { copy: 'Import', table, file, options: p.take('WITH') ? importOptions(p) : [] };
}

function destination(p: Parser): { readonly path: Name; readonly options: OptionValue[] } {
  const path = fileName(p);
  return { path, options: p.take('WITH') ? exportOptions(p) : [] };
}

function fileName(p: Parser): Name {
  return p.kind() === TokenKind.String ? p.takeName(true) : p.name('file name expected');
}

function ended(p: Parser): boolean {
  return p.atEnd() || p.at(';');
}

const IMPORT_OPTIONS: ReadonlySet<string> = new Set([
  'HEADER',
  'TIMESTAMP',
  'FORMAT',
  'DELIMITER',
  'ENCODING',
  'PARTITION',
  'ON',
]);

/**
 * Parses `HEADER true TIMESTAMP ts PARTITION BY DAY ON ERROR ABORT …`. A two-word option name is
 * converted into a single name.
 */
function importOptions(p: Parser): OptionValue[] {
  const options: OptionValue[] = [];
  while (!ended(p)) {
    p.suggest(IMPORT_OPTIONS);
    if (!p.atAnyOf(IMPORT_OPTIONS)) {
      p.fail(
        "'header', 'timestamp', 'format', 'delimiter', 'encoding', 'partition' or 'on' expected",
      );
    }
    const start = p.start();
    const word = p.value();
    p.advance();
    if (word === 'PARTITION') {
      p.expect('BY');
    } else if (word === 'ON') {
      p.expect('ERROR');
    }
    const span = { start, end: p.lastEnd() };
    const name = { text: p.text.slice(start, span.end).replace(/\s+/g, ' '), quoted: false, span };
    options.push({ name, value: optionValue(p) });
  }
  return options;
}

const EXPORT_OPTIONS: ReadonlySet<string> = new Set([
  'FORMAT',
  'HEADER',
  'DELIMITER',
  'PARTITION_BY',
  'COMPRESSION_CODEC',
  'COMPRESSION_LEVEL',
  'ROW_GROUP_SIZE',
  'DATA_PAGE_SIZE',
  'STATISTICS_ENABLED',
  'PARQUET_VERSION',
  'RAW_ARRAY_ENCODING',
  'BLOOM_FILTER_COLUMNS',
  'BLOOM_FILTER_FPP',
  'OVERWRITE',
]);

function exportOptions(p: Parser): OptionValue[] {
  const options: OptionValue[] = [];
  while (!ended(p)) {
    p.suggest(EXPORT_OPTIONS);
    if (!p.atAnyOf(EXPORT_OPTIONS)) {
      p.fail(`unrecognised option: ${p.written()}`);
    }
    const name = p.takeName(false);
    options.push({ name, value: optionValue(p) });
  }
  return options;
}

/** Parses a word, number or string. */
function optionValue(p: Parser): Name {
  const kind = p.kind();
  if (kind === TokenKind.String) {
    return p.takeName(true);
  }
  const number = kind === TokenKind.Integer || kind === TokenKind.Float;
  if (kind !== TokenKind.Word && !number) {
    p.fail('option value expected');
  }
  return p.takeName(false);
}

const BACKUPS = new Map<string, ReadonlyMap<string, BackupStatement['action']>>([
  [
    'CHECKPOINT',
    new Map([
      ['CREATE', 'CheckpointCreate'],
      ['RELEASE', 'CheckpointRelease'],
    ]),
  ],
  [
    'SNAPSHOT',
    new Map([
      ['PREPARE', 'SnapshotPrepare'],
      ['COMPLETE', 'SnapshotComplete'],
    ]),
  ],
  [
    'BACKUP',
    new Map([
      ['DATABASE', 'Database'],
      ['TABLE', 'Tables'],
      ['ABORT', 'Abort'],
    ]),
  ],
]);

/** Parses `CHECKPOINT CREATE`, `SNAPSHOT PREPARE`, `BACKUP DATABASE`, … */
export function parseBackup(p: Parser): NodeId {
  const start = p.start();
  const words = BACKUPS.get(p.value()) ?? new Map<string, BackupStatement['action']>();
  p.advance();
  p.suggest(words.keys());
  const action = p.kind() === TokenKind.Word ? words.get(p.value()) : undefined;
  if (action === undefined) {
    const expected = [...words.keys()].map((word) => `'${word.toLowerCase()}'`);
    p.fail(`${expected.join(' or ')} expected`);
  }
  p.advance();
  const backup: BackupStatement =
    action === 'Tables'
      ? { action, tables: p.list(() => p.tableName('table name expected')) }
      : { action };
  return p.add({ kind: 'Backup', backup }, start, p.lastEnd());
}
