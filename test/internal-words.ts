/** Internal words that must not appear in messages to clients. */

const WORDS: readonly RegExp[] = [
  // The project's internal names and messages.
  /\br\d+\.\w/,
  /\bd\d+c\d+\b/,
  /internal error|panic|unreachable|assertion|unwrap/i,
  /\/(?:root|home|work|tmp)\/|\.rs:\d|\.ts:\d|\.cargo/,
  // Names used by libraries.
  /datafusion|\barrow\b|ArrowError|ParquetError|\bObjectStore\b/i,
  /schema error|physical plan|logical plan|logical expression|execution error|plan error/i,
  /this is a bug|file a bug|not implemented:|this feature is not implemented/i,
  /AggregateUDF|ScalarUDF|WindowUDF|TableScan|SubqueryAlias|ScalarSubquery|OuterReference/,
  /\bplaceholder\b|Utf8View|LargeUtf8|Dictionary\(|Timestamp\((?:Micro|Nano|Milli)second/i,
  /\b(?:Int|UInt|Float|Decimal)(?:8|16|32|64|128|256)\b|\bdowncast/,
  /\w+Exec\b|GroupedHashAggregate|ExternalSorter|HashJoinInput|TopK\b|RecordBatch/,
];

/** Returns the first internal word in a message; `null` if there is none. */
export function internalWord(text: string): string | null {
  for (const word of WORDS) {
    const found = word.exec(text);
    if (found !== null) {
      return found[0];
    }
  }
  return null;
}
