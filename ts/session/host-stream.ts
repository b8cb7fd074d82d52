/** Rows of a statement that are still to come; they fail with what their client is to know. */
import type { DatabaseError } from '../engine/error.js';
import type { Chunk, ResultStream, Summary } from '../engine/types.js';

interface StreamHost {
  failure(error: unknown): DatabaseError;
}

export class HostStream implements ResultStream {
  readonly #host: StreamHost;
  readonly #stream: ResultStream;
  #ended: (() => void) | null;

  /** `ended` is called once, with the last row, an error, or when no more is wanted. */
  constructor(host: StreamHost, stream: ResultStream, ended: () => void) {
    this.#host = host;
    this.#stream = stream;
    this.#ended = ended;
  }

  async next(maxRows?: number): Promise<Chunk | null> {
    try {
      const chunk = await this.#stream.next(maxRows);
      if (chunk === null) {
        this.#end();
      }
      return chunk;
    } catch (error) {
      this.#end();
      throw this.#host.failure(error);
    }
  }

  #end(): void {
    this.#ended?.();
    this.#ended = null;
  }

  summary(): Summary {
    return this.#stream.summary();
  }

  cancel(): void {
    this.#end();
    this.#stream.cancel();
  }
}
