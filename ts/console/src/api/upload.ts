/** Uploads files: requests import proposals from the server, and imports the files. */
import { SqlError, Unreachable } from './client.js';
import { credentialHeaders, loginRefused } from './credentials.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Result of trying a format: of `of` sampled values, the import can read `read`. */
export interface Trial {
  readonly read: number;
  readonly of: number;
}

export interface ProposedColumn {
  readonly name: string;
  /** Column name in the file, if the proposed name differs. */
  readonly header?: string;
  readonly type: string;
  readonly pattern?: string;
  /** True if the import request must set the type, because the import would not detect it. */
  readonly isSet?: boolean;
  /** Number of values that the import can read with the proposed type and pattern. */
  readonly trial?: Trial;
  /** Time formats that were tried, with the number of values that each can read. */
  readonly forms?: readonly (Trial & { readonly type: string; readonly pattern?: string })[];
  readonly couldBeTimestamp: boolean;
  /** Warnings about guesses that may be wrong. */
  readonly notes?: readonly string[];
  readonly values: readonly string[];
  readonly near?: {
    readonly type: string;
    readonly pattern?: string;
    /** Strings that the import would replace with null. */
    readonly nullTexts?: readonly string[];
    readonly misfits: number;
    readonly first: string;
    readonly row: number;
  };
}

/** The server's proposal for an import, based on a sample of the file. */
export interface Proposal {
  readonly table: string;
  readonly delimiter: string;
  readonly header: boolean;
  /** True if `header` is only a guess, because the column types do not determine it. */
  readonly headerIsGuess?: boolean;
  readonly headerBytes: number;
  /**
   * True if the file is sent unchanged, with its own column names, because it is compressed or not
   * plain text.
   */
  readonly asIs?: boolean;
  readonly warnings?: readonly string[];
  /** True if the file declares its column types, so that no types were inferred. */
  readonly isTyped?: boolean;
  readonly rows: number;
  readonly columns: readonly ProposedColumn[];
}

export interface ImportReport {
  readonly location: string;
  readonly rowsImported: number;
  readonly rowsRejected: number;
  readonly warnings?: readonly string[];
  readonly columns: readonly { readonly name: string; readonly errors: number }[];
  /** Descriptions of the first malformed lines: `line 4, field 3: bad syntax`. */
  readonly badLines?: readonly string[];
}

/** Settings for one column in the `schema` field of an import request. */
export interface SchemaEntry {
  readonly name: string;
  readonly type: string;
  readonly pattern?: string;
  readonly nullTexts?: readonly string[];
}

interface Upload {
  /** Query parameters of `/imp`. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly schema: readonly SchemaEntry[];
  readonly data: Blob;
  readonly signal: AbortSignal;
  readonly onProgress: (sentBytes: number, allBytes: number) => void;
}

const SILENT = texts.common.notResponding;

/** Asks the server how many sampled values of a column the import can read in a format. */
export async function tryColumn(
  sample: Blob,
  parameters: Readonly<Record<string, string>>,
  index: number,
  entry: SchemaEntry,
): Promise<Trial & { readonly problem?: string }> {
  const trial = { trial: JSON.stringify(entry), index: String(index) };
  return (await requestPreview(sample, { ...parameters, ...trial })) as Trial & {
    problem?: string;
  };
}

/** Asks the server for an import proposal, based on the beginning of a file. */
export async function preview(
  sample: Blob,
  parameters: Readonly<Record<string, string>>,
): Promise<Proposal> {
  return (await requestPreview(sample, parameters)) as Proposal;
}

async function requestPreview(
  sample: Blob,
  parameters: Readonly<Record<string, string>>,
): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(`api/v1/import/preview?${new URLSearchParams(parameters)}`, {
      method: 'POST',
      headers: await credentialHeaders(),
      body: sample,
    });
  } catch (cause) {
    throw new Unreachable(SILENT, { cause });
  }
  const body = bodyOf(await response.text(), response.status) as { error?: string };
  if (body.error !== undefined) {
    throw new SqlError(body.error, undefined, response.status);
  }
  return body;
}

/**
 * Imports a file. Rejects with a `SqlError` (which contains the server's message), an `Unreachable`
 * or an `AbortError`. No rows are written if the upload did not complete. After a complete upload,
 * the rows may have been written despite the error.
 */
export async function upload(task: Upload): Promise<ImportReport> {
  const form = new FormData();
  if (task.schema.length > 0) {
    form.append('schema', JSON.stringify(task.schema));
  }
  form.append('data', task.data, 'data.csv');
  const parameters = { ...task.parameters, fmt: 'json', badLines: 'true', requireRows: 'true' };
  const address = `imp?${new URLSearchParams(parameters)}`;
  const { text, status } = await send(address, form, task);
  return reportOf(text, status);
}

const FILES = 'api/v1/import/file';

/** Uploads a Parquet file and returns the path for `read_parquet` on the server. */
export async function uploadFile(
  data: Blob,
  task: Pick<Upload, 'signal' | 'onProgress'>,
): Promise<string> {
  const { text, status } = await send(FILES, data, task);
  const body = bodyOf(text, status) as { file?: string; error?: string };
  if (body.file === undefined) {
    throw new SqlError(
      body.error ?? fill(texts.common.returnedStatus, { status }),
      undefined,
      status,
    );
  }
  return body.file;
}

/** Removes an uploaded file. Otherwise, the server removes it after a day. */
export async function removeFile(file: string): Promise<void> {
  await fetch(`${FILES}?${new URLSearchParams({ file })}`, {
    method: 'DELETE',
    headers: await credentialHeaders(),
  }).catch(() => undefined);
}

/**
 * Sends a body and reports the upload progress. Uses `XMLHttpRequest`, because `fetch` reports no
 * progress.
 */
async function send(
  address: string,
  body: Blob | FormData,
  task: Pick<Upload, 'signal' | 'onProgress'>,
): Promise<{ text: string; status: number }> {
  const headers = await credentialHeaders();
  task.signal.throwIfAborted();
  const request = new XMLHttpRequest();
  request.open('POST', address);
  for (const [name, value] of Object.entries(headers)) {
    request.setRequestHeader(name, value);
  }
  request.upload.onprogress = ({ loaded, total }) => task.onProgress(loaded, total);
  task.signal.addEventListener('abort', () => request.abort());
  return await new Promise((resolve, reject) => {
    request.onload = () => resolve({ text: request.responseText, status: request.status });
    request.onerror = () => reject(new Unreachable(SILENT));
    request.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
    request.send(body);
  });
}

function reportOf(text: string, status: number): ImportReport {
  const body = bodyOf(text, status) as ImportReport & { status?: string };
  if (body.status !== 'OK') {
    throw new SqlError(
      body.status ?? fill(texts.common.returnedStatus, { status }),
      undefined,
      status,
    );
  }
  return body;
}

function bodyOf(text: string, status: number): unknown {
  if (status === 401) {
    loginRefused();
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new SqlError(
      text.trim() || fill(texts.common.returnedStatus, { status }),
      undefined,
      status,
    );
  }
}
