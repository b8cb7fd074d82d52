/** Rows of a statement that are still to come; they fail with what their client is to know. */
import type { DatabaseError } from '../engine/error.js';
import type { Chunk, ResultStream, Summary } from '../engine/types.js';

interface StreamHost {
  failure(error: unknown): DatabaseError;
}

export class HostStream implements ResultStream {
  readonly #host: StreamHost;
  readonly #stream: ResultStream;

  constructor(host: StreamHost, stream: ResultStream) {
    this.#host = host;
    this.#stream = stream;
  }

  async next(maxRows?: number): Promise<Chunk | null> {
    try {
      return await this.#stream.next(maxRows);
    } catch (error) {
      throw this.#host.failure(error);
    }
  }

  summary(): Summary {
    return this.#stream.summary();
  }

  cancel(): void {
    this.#stream.cancel();
  }
}
