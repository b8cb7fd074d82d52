/** Executions of statements as record batches, and loops that end at once when they are left. */
import type { RecordBatch } from 'apache-arrow';

import { arenaToBatch } from '../engine/arrow.js';
import { DatabaseError, type PreparedStatement, type Summary } from '../session/index.js';
import { encodeParameters } from './parameters.js';

/** Limits of one execution. */
export interface ExecutionOptions {
  /** Cancels the statement; the call then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout in milliseconds; one minute by default, one hour at most. */
  readonly timeoutMs?: number | undefined;
}

export const NOTHING_COUNTED: Summary = {
  rowsReturned: 0,
  rowsTotal: 0,
  rowsAffected: 0,
  executeNanos: 0,
};

/**
 * Executes a statement and yields its rows as batches. An empty result yields one batch that
 * contains only the columns. Returns the totals.
 */
export async function* execution(
  statement: PreparedStatement,
  parameters: readonly unknown[],
  { signal, timeoutMs }: ExecutionOptions,
): AsyncGenerator<RecordBatch, Summary> {
  signal?.throwIfAborted();
  const limit = timeoutMs === undefined ? {} : { timeoutMs: checkedTimeout(timeoutMs) };
  const values = encodeParameters(parameters, statement.description.parameters.length);
  let cancel = (): void => undefined;
  const aborted = (): void => cancel();
  try {
    const bounds = { elapsedMs: 0, ...limit };
    const how = { rows: { format: 'arrow' } } as const;
    const reply = await statement.execute(
      values,
      how,
      signal === undefined ? bounds : { ...bounds, signal },
    );
    const { stream } = reply;
    cancel = (): void => stream?.cancel();
    signal?.addEventListener('abort', aborted, { once: true });
    let chunk = reply.chunk ?? (await stream?.next()) ?? null;
    while (chunk !== null) {
      signal?.throwIfAborted();
      yield arenaToBatch(chunk.bytes);
      chunk = (await stream?.next()) ?? null;
    }
    cancel = (): void => undefined;
    return reply.summary ?? stream?.summary() ?? NOTHING_COUNTED;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', aborted);
    cancel();
  }
}

function checkedTimeout(timeoutMs: number): number {
  if (typeof timeoutMs !== 'number' || !(timeoutMs > 0)) {
    const message = `invalid timeoutMs ${String(timeoutMs)}: expected a positive number`;
    throw new DatabaseError({ code: 'InvalidValue', message });
  }
  return Math.ceil(timeoutMs);
}

/**
 * Wraps a generator in a loop that can be cancelled. Leaving the loop aborts the generator's
 * signal, so that the loop ends at once. A plain generator would first finish the step that it is
 * waiting for.
 */
export function cancellable<T>(
  generatorOf: (signal: AbortSignal) => AsyncGenerator<T, unknown>,
  given?: AbortSignal,
): AsyncIterableIterator<T> {
  const controller = new AbortController();
  const stopFollowing = follow(controller, given);
  const generator = generatorOf(controller.signal);
  const end = { done: true, value: undefined } as const;
  let isLeft = false;
  return {
    async next(): Promise<IteratorResult<T, undefined>> {
      try {
        const { done = false, value } = await generator.next();
        if (!done) {
          return { done: false, value: value as T };
        }
      } catch (error) {
        if (!isLeft) {
          stopFollowing();
          throw error;
        }
      }
      stopFollowing();
      return end;
    },
    async return(): Promise<IteratorReturnResult<undefined>> {
      isLeft = true;
      stopFollowing();
      controller.abort();
      await generator.return(undefined).catch(() => undefined);
      return end;
    },
    [Symbol.asyncIterator](): AsyncIterableIterator<T> {
      return this;
    },
  };
}

/**
 * Aborts the controller when the given signal aborts; returns a function that ends this. The signal
 * does not keep the controller alive, so an abandoned loop can be collected, which cancels its
 * query. `AbortSignal.any` would keep it alive.
 */
function follow(controller: AbortController, given: AbortSignal | undefined): () => void {
  const follower = new WeakRef(controller);
  const aborted = (): void => follower.deref()?.abort(given?.reason);
  given?.addEventListener('abort', aborted, { once: true });
  if (given?.aborted === true) {
    aborted();
  }
  return () => given?.removeEventListener('abort', aborted);
}
