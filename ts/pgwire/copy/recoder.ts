/** Converts COPY data from other encodings to UTF-8, the only encoding that the engine reads. */

/** A byte that is invalid in UTF-8. It makes the engine refuse the line that contains it. */
const NO_TEXT = Buffer.from([0xff]);
const REPLACEMENT = '\ufffd';

export class Recoder {
  /** The encoding's web label. */
  readonly encoding: string;
  private readonly decoder: InstanceType<typeof TextDecoder>;

  constructor(encoding: string) {
    this.encoding = encoding;
    this.decoder = new TextDecoder(encoding);
  }

  /**
   * Converts the next bytes to UTF-8; bytes that are invalid in the encoding become invalid UTF-8.
   */
  next(bytes: Buffer): Buffer {
    return this.checked(this.decoder.decode(bytes, { stream: true }));
  }

  /** Converts the remaining bytes. */
  end(): Buffer {
    return this.checked(this.decoder.decode());
  }

  private checked(text: string): Buffer {
    const at = text.indexOf(REPLACEMENT);
    return at < 0 ? Buffer.from(text) : Buffer.concat([Buffer.from(text.slice(0, at)), NO_TEXT]);
  }
}
