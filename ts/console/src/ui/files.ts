/**
 * Downloads texts of the page, and complete results from the server.
 *
 * Without a login, or with a session cookie, a link is sufficient: the browser itself downloads the
 * file, whatever its size.
 *
 * A token exists only in this page's memory. A link cannot send it, and it must not be part of a
 * URL, because browser histories and server logs store URLs. The page therefore fetches the file
 * itself. If the browser supports it, the page writes to a file that the user chooses. Otherwise,
 * the page keeps the data in memory, up to a limit.
 */
import { exportAddress, exported, type ExportFormat } from '../api/client.js';
import { hasTokens } from '../api/credentials.js';
import { bytesText } from '../model/format.js';
import { showFailure, showToast } from '../page/notices.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const MAX_IN_MEMORY_BYTES = 512 * 1024 * 1024;
/** Maximum URL length. Servers and proxies reject longer URLs. */
const MAX_ADDRESS_LENGTH = 8000;
/**
 * Delay before the file's object URL is revoked, because the browser may read the file some time
 * after the click.
 */
const FORGOTTEN_AFTER_MS = 60_000;

/** Offers a text as a download. */
export function saveFile(name: string, type: string, text: string): void {
  saveBlob(name, new Blob([text], { type }));
}

/** Offers a blob as a download. */
export function saveBlob(name: string, blob: Blob): void {
  const address = URL.createObjectURL(blob);
  follow(name, address);
  setTimeout(() => URL.revokeObjectURL(address), FORGOTTEN_AFTER_MS);
}

function follow(name: string, address: string): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
}

/** Downloads the complete result of a statement as a file. */
export async function download(
  name: string,
  statement: string,
  format: ExportFormat,
): Promise<void> {
  const file = `${name}.${format}`;
  const address = exportAddress(statement, format);
  if (!hasTokens() && address.length <= MAX_ADDRESS_LENGTH) {
    follow(file, address);
    return;
  }
  const abort = new AbortController();
  try {
    const target = await chosenFile(file);
    const stop = { label: texts.common.cancel, run: () => abort.abort() };
    showToast({
      text: fill(texts.downloads.downloading, { file }),
      state: 'running',
      action: stop,
    });
    const bytes = await exported(statement, format, abort.signal);
    const size = await (target ? toFile(bytes, target) : toMemory(bytes, file));
    showToast({ text: fill(texts.downloads.downloaded, { file, size: bytesText(size) }) });
  } catch (cause) {
    const isStopped = cause instanceof DOMException && cause.name === 'AbortError';
    showFailure(isStopped ? new Error(fill(texts.downloads.cancelled, { file })) : cause);
  }
}

type Bytes = ReadableStream<Uint8Array<ArrayBuffer>>;

/** The file picker is missing in some browsers and in TypeScript's type definitions. */
interface FilePicker {
  showSaveFilePicker?(options: { suggestedName: string }): Promise<FileSystemFileHandle>;
}

async function chosenFile(name: string): Promise<FileSystemFileHandle | undefined> {
  return await (globalThis as FilePicker).showSaveFilePicker?.({ suggestedName: name });
}

/** Writes a download to a file, which remains unchanged until the download is complete. */
async function toFile(bytes: Bytes, target: FileSystemFileHandle): Promise<number> {
  await bytes.pipeTo(await target.createWritable());
  return (await target.getFile()).size;
}

async function toMemory(bytes: Bytes, name: string): Promise<number> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const reader = bytes.getReader();
  let size = 0;
  for (let next = await reader.read(); next.value; next = await reader.read()) {
    size += next.value.length;
    if (size > MAX_IN_MEMORY_BYTES) {
      void reader.cancel();
      throw new Error(
        fill(texts.downloads.tooLarge, { name, limit: bytesText(MAX_IN_MEMORY_BYTES) }),
      );
    }
    chunks.push(next.value);
  }
  saveBlob(name, new Blob(chunks));
  return size;
}
