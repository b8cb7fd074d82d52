/** A statement's remaining rows; errors are converted for the client. */
import type { DatabaseError } from '../engine/error.js';
import type { Chunk, ResultStream, Summary } from '../engine/types.js';

interface StreamHost {
  failure(error: unknown): DatabaseError;
}

export class HostStream implements ResultStream {
  readonly #host: StreamHost;
  readonly #stream: ResultStream;
  #ended: (() => void) | null;

  /** `ended` is called exactly once: after the last row, after an error, or after cancellation. */
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
