/** Splits a stream of bytes into lines. Only the two ends of an overlong line are kept. */

const NEW_LINE = 0x0a;
/** Bytes kept from each end of a line that is too long. */
const KEPT_BYTES = 1_024;

interface LineHandler {
  readonly line: (text: string) => void;
  readonly tooLong: (beginning: string, end: string) => void;
}

export class Lines {
  readonly #longest: number;
  readonly #handler: LineHandler;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(longest: number, handler: LineHandler) {
    this.#longest = longest;
    this.#handler = handler;
  }

  take(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEW_LINE); at >= 0; at = chunk.indexOf(NEW_LINE, from)) {
      this.#keep(chunk.subarray(from, at));
      this.#end();
      from = at + 1;
    }
    this.#keep(chunk.subarray(from));
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length;
    this.#pieces.push(piece);
    if (this.#bytes > this.#longest) {
      const all = Buffer.concat(this.#pieces);
      // Discards the middle; the ends suffice for reading the message id.
      this.#pieces = [
        Buffer.from(all.subarray(0, KEPT_BYTES)),
        Buffer.from(all.subarray(-KEPT_BYTES)),
      ];
    }
  }

  #end(): void {
    const text = Buffer.concat(this.#pieces).toString('utf8');
    const isTooLong = this.#bytes > this.#longest;
    this.#pieces = [];
    this.#bytes = 0;
    if (isTooLong) {
      this.#handler.tooLong(text.slice(0, KEPT_BYTES), text.slice(-KEPT_BYTES));
    } else if (text.trim() !== '') {
      this.#handler.line(text);
    }
  }
}
