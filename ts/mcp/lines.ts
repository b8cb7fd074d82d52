/** Splits a stream of bytes into lines. For an overlong line, only its two ends are buffered. */

const NEW_LINE = 0x0a;
/** Number of bytes buffered from each end of an overlong line. */
const EDGE_BYTES = 1_024;

interface LineHandler {
  readonly line: (text: string) => void;
  readonly tooLong: (beginning: string, end: string) => void;
}

export class Lines {
  readonly #maxBytes: number;
  readonly #handler: LineHandler;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number, handler: LineHandler) {
    this.#maxBytes = maxBytes;
    this.#handler = handler;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEW_LINE); at >= 0; at = chunk.indexOf(NEW_LINE, from)) {
      this.#append(chunk.subarray(from, at));
      this.#end();
      from = at + 1;
    }
    this.#append(chunk.subarray(from));
  }

  #append(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.#bytes > this.#maxBytes) {
      const all = Buffer.concat(this.#chunks);
      // Discards the middle of the line. Its two ends are enough to find the message ID.
      this.#chunks = [
        Buffer.from(all.subarray(0, EDGE_BYTES)),
        Buffer.from(all.subarray(-EDGE_BYTES)),
      ];
    }
  }

  #end(): void {
    const text = Buffer.concat(this.#chunks).toString('utf8');
    const isTooLong = this.#bytes > this.#maxBytes;
    this.#chunks = [];
    this.#bytes = 0;
    if (isTooLong) {
      this.#handler.tooLong(text.slice(0, EDGE_BYTES), text.slice(-EDGE_BYTES));
    } else if (text.trim() !== '') {
      this.#handler.line(text);
    }
  }
}
