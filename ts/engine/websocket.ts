/** Decodes WebSocket frames in the addon. */
import { native, type NativeWebSocket } from './addon.js';
import { decodedSync } from './decode.js';
import { exclusiveMemory } from './memory.js';

/** The result of decoding received bytes. */
interface ReceivedFrames {
  /** Complete messages; empty if the reader buffers them. */
  readonly messages: readonly Buffer[];
  /** Buffered messages that have not been read yet. */
  readonly buffered: BufferedMessages;
  /** Bytes to send to the client: replies to its ping and close frames. */
  readonly reply: Buffer | null;
  /** Whether no further message follows, for example because the client closed the connection. */
  readonly isOver: boolean;
  /** The close code and reason if the client violated the protocol. */
  readonly failure: { readonly code: number; readonly reason: string } | null;
}

/** Messages buffered for an appender. */
export interface BufferedMessages {
  readonly count: number;
  readonly bytes: number;
}

/** Decodes the WebSocket frames that a client sends. */
export class WebSocketReader {
  /** Handle for the engine. */
  readonly native: NativeWebSocket;

  /**
   * Messages longer than the maximum are refused. Buffered messages are passed to an appender and
   * never returned here.
   */
  constructor(maxMessageBytes: number, buffersMessages = false) {
    this.native = new native.NativeWebSocket(maxMessageBytes, buffersMessages);
  }

  /**
   * Decodes bytes from the socket. Unless other buffers share its memory, `bytes` is empty
   * afterwards.
   */
  receive(bytes: Buffer): ReceivedFrames {
    const received = decodedSync(() => {
      return this.native.receive(exclusiveMemory(bytes) ?? Uint8Array.from(bytes).buffer);
    });
    const { messages, queuedMessages, queuedBytes, reply, isOver, closeCode, reason } = received;
    return {
      messages,
      buffered: { count: queuedMessages, bytes: queuedBytes },
      reply: reply ?? null,
      isOver,
      failure: closeCode === undefined ? null : { code: closeCode, reason: reason ?? '' },
    };
  }
}
