/** Data of COPY in other encodings than UTF-8, which is the only one that the engine reads. */

/** No text of UTF-8 has it: the engine refuses the line that has it. */
const NO_TEXT = Buffer.from([0xff]);
const REPLACEMENT = '\ufffd';

export class Recoder {
  /** As the web names it. */
  readonly encoding: string;
  private readonly decoder: InstanceType<typeof TextDecoder>;

  constructor(encoding: string) {
    this.encoding = encoding;
    this.decoder = new TextDecoder(encoding);
  }

  /** The next bytes as UTF-8; what is no text of the encoding is none afterwards. */
  next(bytes: Buffer): Buffer {
    return this.checked(this.decoder.decode(bytes, { stream: true }));
  }

  /** What the last bytes leave. */
  end(): Buffer {
    return this.checked(this.decoder.decode());
  }

  private checked(text: string): Buffer {
    const at = text.indexOf(REPLACEMENT);
    return at < 0 ? Buffer.from(text) : Buffer.concat([Buffer.from(text.slice(0, at)), NO_TEXT]);
  }
}
