/**
 * The files that the user has selected for import. They are previewed, configured, and then
 * imported one after the other.
 */
import { createStore, produce } from 'solid-js/store';
import { aborted, query, Unreachable } from '../api/client.js';
import {
  preview,
  removeFile,
  tryColumn,
  upload,
  uploadFile,
  type ImportReport,
  type Proposal,
  type Trial,
} from '../api/upload.js';
import { grouped, rowsText } from '../model/format.js';
import { KIND_LABELS } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { announce } from '../page/notices.js';
import { endingOf, isFinished, stateOf, type TableState } from './ending.js';
import { linesOf, type BadLine, type FileLine } from './lines.js';
import {
  entryOf,
  firstChoices,
  headerLine,
  parametersOf,
  schemaOf,
  type Choices,
  type ColumnChoice,
  type Existing,
} from './model.js';
import { importParquet, proposeParquet } from './parquet.js';
import { advanced, begun, percent, type Progress } from './progress.js';
import { importing } from '../page/imports.js';
import type { Schema } from '../state/schema.js';
import type { Activity } from '../state/activity.js';
import { messageOf } from '../model/message.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export type FileState = 'reading' | 'ready' | 'refused' | 'waiting' | 'sending' | 'done' | 'failed';

export interface ImportFile {
  readonly id: number;
  readonly name: string;
  readonly size: number;
  state: FileState;
  proposal?: Proposal;
  choices?: Choices;
  /** Results of trying the chosen types and patterns, by column index. */
  trials?: Readonly<Record<number, ColumnTrial>>;
  existing?: Existing | undefined;
  /** Kind of the existing object with the table's name, if it accepts no rows: `live view`. */
  occupiedBy?: string | undefined;
  progress?: Progress;
  report?: ImportReport;
  /** Duration of the import, in milliseconds. */
  durationMs?: number;
  /** Error message, if the file was refused or its import failed. */
  message?: string;
}

/** Result of trying a type and pattern, or the error if they are invalid. */
export type ColumnTrial = Partial<Trial> & { readonly problem?: string };

const TRIAL_PAUSE_MS = 250;

/** Number of bytes to sample for the proposal. A thousand lines rarely need more. */
const SAMPLE_BYTES = 1024 * 1024;
const QUARTER = 25;
const PARQUET_MARK = 'PAR1';

interface ImportContext {
  readonly schema: Schema;
  readonly activity: Activity;
}

export class ImportQueue {
  readonly #schema: Schema;
  readonly #activity: Activity;
  readonly #setFiles: ReturnType<typeof createStore<{ files: ImportFile[] }>>[1];
  readonly #blobs = new Map<number, File>();
  readonly #aborts = new Map<number, AbortController>();
  /** Server paths of the uploaded Parquet files, by file id. */
  readonly #uploaded = new Map<number, string>();
  readonly #state: { readonly files: ImportFile[] };
  #lastId = 0;
  /** The owner that the user chose last, which is the default for the next file. */
  #owner = '';
  #sending = false;
  #trialTimer: ReturnType<typeof setTimeout> | undefined;

  constructor({ schema, activity }: ImportContext) {
    const [state, setFiles] = createStore<{ files: ImportFile[] }>({ files: [] });
    this.#schema = schema;
    this.#activity = activity;
    this.#state = state;
    this.#setFiles = setFiles;
  }

  /** All files, in the order in which they were added. */
  get files(): readonly ImportFile[] {
    return this.#state.files;
  }

  of(id: number): ImportFile | undefined {
    return this.#state.files.find((file) => file.id === id);
  }

  /** Adds files and requests a proposal for each. Returns the ids of the files, in order. */
  add(files: Iterable<File>, table = ''): number[] {
    return [...files].map((file) => {
      const id = ++this.#lastId;
      this.#blobs.set(id, file);
      const { name, size } = file;
      this.#setFiles('files', (all) => [...all, { id, name, size, state: 'reading' }]);
      void this.preview(id, table === '' ? {} : { name: table });
      return id;
    });
  }

  /** Requests a new proposal, given the user's settings for the file format. */
  async preview(id: number, form: Readonly<Record<string, string>>): Promise<void> {
    const blob = this.#blobs.get(id);
    if (!blob) {
      return;
    }
    if (blob.size === 0) {
      this.#change(id, {
        state: 'refused',
        message: fill(texts.importPage.emptyFile, { name: blob.name }),
      });
      return;
    }
    try {
      await this.#propose(id, blob, form);
    } catch (cause) {
      const message = aborted(cause) ? texts.importPage.stopped : plainMessage(cause);
      this.#change(id, { state: 'refused', message });
    }
  }

  async #propose(id: number, blob: File, form: Readonly<Record<string, string>>): Promise<void> {
    const sample = blob.slice(0, SAMPLE_BYTES);
    const whole = String(blob.size <= SAMPLE_BYTES);
    const isParquet = (await sample.slice(0, PARQUET_MARK.length).text()) === PARQUET_MARK;
    const proposal = isParquet
      ? await this.#bring(id, blob)
      : await preview(sample, { name: blob.name, whole, ...form });
    const proposed = firstChoices(proposal);
    const choices = { ...proposed, table: form['name'] ?? proposed.table, owner: this.#owner };
    this.#change(id, { state: 'ready', proposal, choices, trials: {} });
    await this.rename(id, choices.table);
  }

  /** Uploads a Parquet file and requests its proposal. Only the server can read such files. */
  async #bring(id: number, blob: File): Promise<Proposal> {
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    this.#change(id, { progress: begun(performance.now(), blob.size) });
    try {
      const { signal } = abort;
      const onProgress = (sent: number, all: number): void => this.#advance(id, sent, all);
      const path = await uploadFile(blob, { signal, onProgress });
      this.#uploaded.set(id, path);
      return await proposeParquet(path, blob.name, signal);
    } finally {
      this.#aborts.delete(id);
    }
  }

  /** Sets the name of the target table, and checks whether this table exists. */
  async rename(id: number, table: string): Promise<void> {
    this.decide(id, { table });
    const found = await this.#find(table.trim());
    if (this.of(id)?.choices?.table !== table) {
      return;
    }
    this.#change(id, { existing: undefined, occupiedBy: undefined, ...found });
  }

  async #find(table: string): Promise<Pick<ImportFile, 'existing' | 'occupiedBy'>> {
    const entry = this.#schema.known.find(({ name }) => name.toLowerCase() === table.toLowerCase());
    if (entry?.kind !== 'table') {
      return entry ? { occupiedBy: KIND_LABELS[entry.kind] } : {};
    }
    const { rows } = await query(`SHOW COLUMNS FROM ${quoted(entry.name)}`);
    const columns = new Map(
      rows.map(([name, type]) => [String(name).toLowerCase(), String(type)] as const),
    );
    const { timestamp, partitionBy } = entry;
    return { existing: { timestamp, partitionBy, rows: entry.rows, columns } };
  }

  decide(id: number, changes: Partial<Choices>): void {
    const choices = this.of(id)?.choices;
    this.#owner = changes.owner ?? this.#owner;
    if (choices) {
      this.#change(id, { choices: { ...choices, ...changes } });
    }
  }

  /** Asks the server to try the type and pattern of a column, once the user stops typing. */
  try(id: number, index: number, column: ColumnChoice): void {
    this.#change(id, { trials: { ...this.of(id)?.trials, [index]: {} } });
    clearTimeout(this.#trialTimer);
    this.#trialTimer = setTimeout(() => void this.#try(id, index, column), TRIAL_PAUSE_MS);
  }

  async #try(id: number, index: number, column: ColumnChoice): Promise<void> {
    const blob = this.#blobs.get(id);
    const proposal = this.of(id)?.proposal;
    if (!blob || !proposal) {
      return;
    }
    const { delimiter, header } = proposal;
    const whole = String(blob.size <= SAMPLE_BYTES);
    const form = { name: blob.name, delimiter, header: String(header), whole };
    const sample = blob.slice(0, SAMPLE_BYTES);
    const found = await tryColumn(sample, form, index, entryOf(column)).catch(
      (cause: unknown): ColumnTrial => ({ problem: plainMessage(cause) }),
    );
    const now = this.of(id)?.choices?.columns[index];
    if (now?.type === column.type && now.pattern === column.pattern) {
      this.#change(id, { trials: { ...this.of(id)?.trials, [index]: found } });
    }
  }

  /** Queues a file for import. Files queued earlier are imported first. */
  start(id: number): void {
    this.#change(id, { state: 'waiting' });
    void this.#next();
  }

  /** Reads the text of the lines that the server could not parse. */
  async linesOf(id: number, bad: readonly BadLine[]): Promise<FileLine[]> {
    const blob = this.#blobs.get(id);
    const proposal = this.of(id)?.proposal;
    return blob && proposal ? await linesOf(blob, proposal, bad) : [];
  }

  /** Stops the import of a file, or removes the file from the list if it is not being imported. */
  remove(id: number): void {
    const abort = this.#aborts.get(id);
    if (abort) {
      abort.abort();
      return;
    }
    this.#blobs.delete(id);
    this.#discard(id);
    this.#setFiles('files', (all) => all.filter((file) => file.id !== id));
  }

  #discard(id: number): void {
    const path = this.#uploaded.get(id);
    if (path !== undefined) {
      this.#uploaded.delete(id);
      void removeFile(path);
    }
  }

  async #next(): Promise<void> {
    const file = this.#state.files.find(({ state }) => state === 'waiting');
    if (this.#sending || !file) {
      return;
    }
    this.#sending = true;
    importing.set(true);
    await this.#send(file);
    this.#sending = false;
    importing.set(false);
    await this.#schema.refresh();
    void this.#next();
  }

  async #send({ id, name, proposal, choices, existing }: ImportFile): Promise<void> {
    const blob = this.#blobs.get(id);
    if (!blob || !proposal || !choices) {
      return;
    }
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    const { signal } = abort;
    const startedAt = performance.now();
    const path = this.#uploaded.get(id);
    const progress = begun(startedAt, blob.size);
    // A Parquet file has already been uploaded.
    const sent = path === undefined ? 0 : blob.size;
    this.#change(id, { state: 'sending', progress: { ...progress, sent } });
    const table = choices.table.trim();
    const before = await stateOf(table).catch(() => undefined);
    try {
      const report =
        path === undefined
          ? await upload({
              parameters: parametersOf(proposal, choices, existing),
              schema: schemaOf(proposal, choices, existing),
              data: dataOf(blob, proposal, choices),
              signal,
              onProgress: (sent, all) => this.#advance(id, sent, all),
            })
          : await importParquet(path, proposal, choices, existing, signal, () =>
              isFinished(this.#activity, path),
            );
      const { rowsImported, rowsRejected } = report;
      if (rowsImported === 0 && rowsRejected > 0) {
        throw new Error(nothingImported(rowsRejected));
      }
      this.#discard(id);
      this.#change(id, { state: 'done', report, durationMs: performance.now() - startedAt });
      announce(fill(texts.importPage.wasImported, { name, rows: rowsText(rowsImported) }));
    } catch (cause) {
      const message = await this.#ending(id, table, before, cause);
      this.#change(id, { state: 'failed', message });
      announce(`${name}: ${message}`);
    } finally {
      this.#aborts.delete(id);
    }
  }

  /**
   * Explains why an import failed. If the server did not respond, also describes the resulting
   * state of the table.
   */
  async #ending(
    id: number,
    table: string,
    before: TableState | undefined,
    cause: unknown,
  ): Promise<string> {
    const isStopped = aborted(cause);
    if (!isStopped && !(cause instanceof Unreachable)) {
      return plainMessage(cause);
    }
    const path = this.#uploaded.get(id);
    const { sent = 0, all = 0 } = this.of(id)?.progress ?? {};
    const isDecided = path === undefined ? sent < all : await isFinished(this.#activity, path);
    const ending = await endingOf(table, before, isDecided ? 'part' : 'whole');
    return `${isStopped ? texts.importPage.wasStopped : texts.common.notResponding} ${ending}`;
  }

  #advance(id: number, sent: number, all: number): void {
    const before = this.of(id)?.progress;
    if (!before) {
      return;
    }
    const progress = advanced(before, performance.now(), sent, all);
    this.#change(id, { progress });
    const quarter = Math.floor(percent(progress) / QUARTER);
    if (quarter > Math.floor(percent(before) / QUARTER)) {
      announce(fill(texts.importPage.percentUploaded, { percent: quarter * QUARTER }));
    }
  }

  #change(id: number, changes: Partial<ImportFile>): void {
    this.#setFiles(
      produce((state) => {
        const at = state.files.findIndex((file) => file.id === id);
        const file = state.files[at];
        if (file) {
          Object.assign(file, changes);
        }
      }),
    );
  }
}

function nothingImported(rows: number): string {
  const count = grouped(String(rows));
  return fill(texts.importPage.nothingImported, { count });
}

/** Rewords server errors for users who think of a file rather than a request. */
const PLAIN_MESSAGES: readonly (readonly [RegExp, (match: RegExpExecArray) => string])[] = [
  [/^nothing was imported: (\d+) of/, ([, rows]) => nothingImported(Number(rows))],
  [
    /^(?:not enough lines|cannot determine text structure) \[[^\]]*\](?:: (.*))?$/s,
    ([, why]) =>
      why === undefined
        ? texts.importPage.tooFewLines
        : fill(texts.importPage.notDetected, { reason: why }),
  ],
  [
    /^min deviation is too high \[[^\]]*\]: (.*?)(?:; correct it.*)?$/s,
    ([, why = '']) => fill(texts.importPage.differentFields, { reason: why }),
  ],
  [
    /^duplicate column name found \[no=(\d+),name=(.*)\]$/s,
    ([, at, name = '']) => fill(texts.importPage.sameName, { number: Number(at) + 1, name }),
  ],
];

function plainMessage(cause: unknown): string {
  const text = messageOf(cause);
  for (const [pattern, plain] of PLAIN_MESSAGES) {
    const match = pattern.exec(text);
    if (match) {
      return plain(match);
    }
  }
  return text;
}

/** Returns the data to send. Plain text gets a header line with the chosen names. */
function dataOf(blob: Blob, proposal: Proposal, choices: Choices): Blob {
  return proposal.asIs
    ? blob
    : new Blob([headerLine(proposal, choices), blob.slice(proposal.headerBytes)]);
}

let queue: ImportQueue | undefined;

/**
 * Returns the import queue. All pages share one queue, so that an import continues while other
 * pages are shown.
 */
export function importQueue(context: ImportContext): ImportQueue {
  queue ??= new ImportQueue(context);
  return queue;
}
