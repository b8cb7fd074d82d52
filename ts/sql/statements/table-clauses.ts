/** Clauses that statements about tables and views share. */
import type { Name, OptionValue, PolicyStages } from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';

/** Parses `IF NOT EXISTS`. */
export function ifNotExists(p: Parser): boolean {
  if (!p.at('IF')) {
    return false;
  }
  p.advance();
  p.expect('NOT');
  p.expect('EXISTS');
  return true;
}

/** Returns the text between parentheses, as written. */
export function enclosedText(p: Parser): Name {
  const open = p.start();
  p.expect('(');
  const from = p.start();
  let depth = 1;
  for (;;) {
    if (p.atEnd()) {
      p.failAt('unbalanced (', open, open + 1);
    }
    if (p.at('(')) {
      depth += 1;
    } else if (p.at(')')) {
      depth -= 1;
    }
    if (depth === 0) {
      break;
    }
    p.advance();
  }
  const span = { start: from, end: p.lastEnd() };
  p.advance();
  return { text: p.text.slice(span.start, span.end), quoted: false, span };
}

const PARTITION_UNITS: ReadonlySet<string> = new Set([
  'NONE',
  'HOUR',
  'DAY',
  'WEEK',
  'MONTH',
  'YEAR',
]);

/** Parses a unit in PARTITION BY, as written. */
export function partitionUnit(p: Parser): Name {
  p.suggest(PARTITION_UNITS);
  if (!p.atAnyOf(PARTITION_UNITS)) {
    p.fail("'NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH' or 'YEAR' expected");
  }
  return p.takeName(false);
}

/** Parses `TTL 4 WEEKS` or `TTL 30d`, and returns the text after TTL as a single name. */
export function parseTtl(p: Parser): Name {
  p.advance();
  if (p.atEnd()) {
    p.fail('missing argument, should be <number> <unit> or <number_with_unit>');
  }
  const start = p.start();
  if (p.kind() === TokenKind.Duration) {
    return p.takeName(false);
  }
  if (p.kind() !== TokenKind.Integer) {
    p.fail(`invalid syntax, should be <number> <unit> but was ${p.written()}`);
  }
  p.advance();
  if (p.kind() !== TokenKind.Word) {
    p.fail('missing unit, HOUR(S), DAY(S), WEEK(S), MONTH(S) or YEAR(S) expected');
  }
  p.advance();
  const span = { start, end: p.lastEnd() };
  return { text: p.text.slice(span.start, span.end), quoted: false, span };
}

/** Parses index options: `CAPACITY n`, `TYPE POSTING DELTA`, `INCLUDE (a, b)`. */
export function indexOptions(p: Parser): OptionValue[] {
  const options: OptionValue[] = [];
  for (;;) {
    if (p.at('CAPACITY')) {
      const word = p.takeName(false);
      if (p.kind() !== TokenKind.Integer) {
        p.fail('index capacity expected');
      }
      options.push({ name: word, value: p.takeName(false) });
    } else if (p.at('TYPE')) {
      const word = p.takeName(false);
      const value = p.name('index type expected');
      const form = p.at('DELTA') || p.at('EF') ? ` ${p.takeName(false).text}` : '';
      options.push({ name: word, value: { ...value, text: value.text + form } });
    } else if (p.at('INCLUDE', '(')) {
      const word = p.takeName(false);
      options.push({ name: word, value: enclosedText(p) });
    } else {
      return options;
    }
  }
}

/** Storage policy stages: each stage's keywords, and its member in the tree. */
const STAGES = [
  ['TO', 'PARQUET', 'to_parquet'],
  ['TO', 'REMOTE', 'to_remote'],
  ['DROP', 'LOCAL', 'drop_local'],
] as const;

/** Parses `(TO PARQUET 3d, DROP LOCAL 1 MONTH)` in STORAGE POLICY. */
export function policyStages(p: Parser): PolicyStages {
  const open = p.start();
  p.expect('(');
  const policy: { -readonly [Stage in keyof PolicyStages]: PolicyStages[Stage] } = {
    to_parquet: null,
    to_remote: null,
    drop_local: null,
  };
  p.list(() => {
    if (p.at('DROP', 'REMOTE')) {
      p.fail("'DROP REMOTE' is not supported yet");
    }
    const stage = STAGES.find(([verb, noun]) => p.at(verb, noun));
    if (stage === undefined) {
      p.fail("'to parquet', 'to remote' or 'drop local' expected");
    }
    const [verb, noun, member] = stage;
    if (policy[member] !== null) {
      p.fail(`duplicate '${verb} ${noun}'`);
    }
    p.advance();
    // The age has the same syntax as a TTL. `parseTtl` skips one keyword, which is TTL elsewhere
    // and the stage's last keyword here.
    policy[member] = parseTtl(p);
  });
  p.close(open);
  return policy;
}

const ENCODINGS: ReadonlySet<string> = new Set([
  'DEFAULT',
  'PLAIN',
  'RLE_DICTIONARY',
  'DELTA_LENGTH_BYTE_ARRAY',
  'DELTA_BINARY_PACKED',
]);

/** Codecs and their maximum compression levels; 0 for a codec without levels. */
const CODECS: ReadonlyMap<string, number> = new Map([
  ['LZ4_RAW', 0],
  ['ZSTD', 22],
  ['SNAPPY', 0],
  ['GZIP', 9],
  ['BROTLI', 11],
  ['UNCOMPRESSED', 0],
]);

/** Parses `(encoding, codec(level), BLOOM_FILTER)` in PARQUET, as written. */
export function parquetSettings(p: Parser): Name {
  const open = p.start();
  p.expect('(');
  const start = p.start();
  if (!p.take('BLOOM_FILTER')) {
    p.suggest(ENCODINGS);
    if (!p.atAnyOf(ENCODINGS)) {
      p.fail(`invalid parquet encoding: ${p.written()}`);
    }
    p.advance();
    if (p.at(',') && p.value(1) !== 'BLOOM_FILTER') {
      p.advance();
      codec(p);
    }
    if (p.take(',')) {
      p.expect('BLOOM_FILTER', "'bloom_filter' expected");
    }
  }
  const span = { start, end: p.lastEnd() };
  p.close(open);
  return { text: p.text.slice(span.start, span.end), quoted: false, span };
}

function codec(p: Parser): void {
  p.suggest(CODECS.keys());
  const word = p.kind() === TokenKind.Word ? p.value() : '';
  const highest = CODECS.get(word);
  if (highest === undefined) {
    p.fail(`invalid parquet compression codec: ${p.written()}`);
  }
  p.advance();
  if (!p.at('(')) {
    return;
  }
  const open = p.start();
  p.advance();
  const level = p.kind() === TokenKind.Integer ? Number(p.written()) : -1;
  if (highest === 0 || !(level >= 0 && level <= highest)) {
    p.fail(`invalid compression level for ${word.toLowerCase()}: ${p.written()} [max=${highest}]`);
  }
  p.advance();
  p.close(open);
}
