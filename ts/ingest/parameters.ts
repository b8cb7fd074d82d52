/** The query parameters of `/imp`, as text; their meaning is checked by `importCsv`. */
export interface ImportParameters {
  /** Table name; `null` takes the data part's file name. */
  readonly name: string | null;
  /** `null` detects it. */
  readonly delimiter: string | null;
  readonly format: 'json' | 'tabular';
  readonly forceHeader: boolean;
  readonly atomicity: 'abort' | 'skipRow' | 'skipCol';
  readonly overwrite: boolean;
  readonly create: boolean;
  readonly skipExtraValues: boolean;
  /** Designated timestamp of a table to be created. */
  readonly timestamp: string | null;
  readonly partitionBy: string | null;
  readonly o3MaxLag: string | null;
  readonly maxUncommittedRows: string | null;
}

/** Reads the parameters of a request; names are case-sensitive, the last of repeated ones wins. */
export function readImportParameters(query: URLSearchParams): ImportParameters {
  const last = (name: string): string | null => query.getAll(name).at(-1) ?? null;
  const filled = (name: string): string | null => last(name) || null;
  const isTrue = (name: string): boolean => last(name)?.toLowerCase() === 'true';
  const delimiter = last('delimiter');
  return {
    name: last('name'),
    delimiter: delimiter !== null && delimiter.length === 1 ? delimiter : null,
    format: last('fmt')?.toLowerCase() === 'json' ? 'json' : 'tabular',
    forceHeader: isTrue('forceHeader'),
    atomicity: readAtomicity(last('atomicity')),
    overwrite: isTrue('overwrite'),
    create: last('create')?.toLowerCase() !== 'false',
    skipExtraValues: isTrue('skipLev'),
    timestamp: filled('timestamp'),
    partitionBy: filled('partitionBy'),
    o3MaxLag: filled('o3MaxLag'),
    maxUncommittedRows: filled('maxUncommittedRows'),
  };
}

/** Unknown words mean `skipCol`, as observed. */
function readAtomicity(text: string | null): ImportParameters['atomicity'] {
  switch (text?.toLowerCase()) {
    case 'abort':
      return 'abort';
    case 'skiprow':
      return 'skipRow';
    default:
      return 'skipCol';
  }
}
