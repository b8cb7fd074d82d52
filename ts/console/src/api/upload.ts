/** File uploads: the import that the server proposes, and the import itself. */
import { SqlError, Unreachable } from './client.js';
import { credentialHeaders, loginRefused } from './credentials.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** How many of the sampled values the import can read in one format. */
export interface Trial {
  readonly read: number;
  readonly of: number;
}

export interface ProposedColumn {
  readonly name: string;
  /** The header in the file that this name replaces. */
  readonly header?: string;
  readonly type: string;
  readonly pattern?: string;
  /** Whether the request sets the type, because the import would not detect it. */
  readonly isSet?: boolean;
  /** How many of the values the import can read as proposed. */
  readonly trial?: Trial;
  /** Time formats in which the import can read the values. */
  readonly forms?: readonly (Trial & { readonly type: string; readonly pattern?: string })[];
  readonly couldBeTimestamp: boolean;
  /** Guesses that may be wrong. */
  readonly notes?: readonly string[];
  readonly values: readonly string[];
  readonly near?: {
    readonly type: string;
    readonly pattern?: string;
    /** Strings that would become null. */
    readonly nullTexts?: readonly string[];
    readonly misfits: number;
    readonly first: string;
    readonly row: number;
  };
}

/** The import that the server proposes for a sample of the file. */
export interface Proposal {
  readonly table: string;
  readonly delimiter: string;
  readonly header: boolean;
  /** Whether `header` is a guess because the column types do not determine it. */
  readonly headerIsGuess?: boolean;
  readonly headerBytes: number;
  /**
   * Whether the file is sent unchanged, with its own column names, because it is compressed or not
   * plain text.
   */
  readonly asIs?: boolean;
  readonly warnings?: readonly string[];
  /** Whether the file declares its column types, so that none were inferred. */
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
  /** First malformed lines: `line 4, field 3: bad syntax`. */
  readonly badLines?: readonly string[];
}

/** Entry for a column in the `schema` part of an import. */
export interface SchemaEntry {
  readonly name: string;
  readonly type: string;
  readonly pattern?: string;
  readonly nullTexts?: readonly string[];
}

interface Upload {
  /** Parameters of `/imp`. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly schema: readonly SchemaEntry[];
  readonly data: Blob;
  readonly signal: AbortSignal;
  readonly onProgress: (sentBytes: number, allBytes: number) => void;
}

const SILENT = texts.common.notResponding;

/** Asks the server how many values of a column the import can read in a format. */
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

/** Asks the server how `/imp` would import the beginning of a file. */
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
 * or an `AbortError`. A file that was not sent completely leaves no rows. After a complete upload,
 * the server may have written the file despite the error.
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

/** Uploads a Parquet file; returns the name under which `read_parquet` reads it on the server. */
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

/** Removes an uploaded file; the server does so itself after a day. */
export async function removeFile(file: string): Promise<void> {
  await fetch(`${FILES}?${new URLSearchParams({ file })}`, {
    method: 'DELETE',
    headers: await credentialHeaders(),
  }).catch(() => undefined);
}

/** Sends a body and reports its upload progress, which `fetch` cannot do. */
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
