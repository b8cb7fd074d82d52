/** Reads the first bytes of a stream without consuming them. */

interface Peeked {
  /** The first bytes: at least the requested number, unless the stream is shorter. */
  readonly head: Buffer;
  /** The complete stream, including the head. */
  readonly all: AsyncGenerator<Buffer>;
}

export async function peek(content: AsyncIterable<Buffer>, bytes: number): Promise<Peeked> {
  const iterator = content[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  let isComplete = false;
  while (head.length < bytes && !isComplete) {
    const next = await iterator.next();
    isComplete = next.done === true;
    head = next.done === true ? head : Buffer.concat([head, next.value]);
  }
  return { head, all: follow(head, iterator, isComplete) };
}

async function* follow(
  head: Buffer,
  iterator: AsyncIterator<Buffer>,
  isComplete: boolean,
): AsyncGenerator<Buffer> {
  try {
    if (head.length > 0) {
      yield head;
    }
    while (!isComplete) {
      const next = await iterator.next();
      if (next.done === true) {
        return;
      }
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}
