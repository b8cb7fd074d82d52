/** Words that speak of the program and not of the statement: no client is to read them. */

const WORDS: readonly RegExp[] = [
  // Ours: what a statement becomes, and what a defect says.
  /\br\d+\.\w/,
  /\bd\d+c\d+\b/,
  /internal error|panic|unreachable|assertion|unwrap/i,
  /\/(?:root|home|work|tmp)\/|\.rs:\d|\.ts:\d|\.cargo/,
  // The libraries'.
  /datafusion|\barrow\b|ArrowError|ParquetError|\bObjectStore\b/i,
  /schema error|physical plan|logical plan|logical expression|execution error|plan error/i,
  /this is a bug|file a bug|not implemented:|this feature is not implemented/i,
  /AggregateUDF|ScalarUDF|WindowUDF|TableScan|SubqueryAlias|ScalarSubquery|OuterReference/,
  /\bplaceholder\b|Utf8View|LargeUtf8|Dictionary\(|Timestamp\((?:Micro|Nano|Milli)second/i,
  /\b(?:Int|UInt|Float|Decimal)(?:8|16|32|64|128|256)\b|\bdowncast/,
  /\w+Exec\b|GroupedHashAggregate|ExternalSorter|HashJoinInput|TopK\b|RecordBatch/,
];

/** The first such word in a text; `null` when there is none. */
export function innerWord(text: string): string | null {
  for (const word of WORDS) {
    const found = word.exec(text);
    if (found !== null) {
      return found[0];
    }
  }
  return null;
}
