/** Frames of WebSockets, read by the addon. */
import { native, type NativeWebSocket } from './addon.js';
import { decodedSync } from './decode.js';
import { wholeMemory } from './memory.js';

/** What bytes of a WebSocket came to. */
interface ReceivedFrames {
  /** Those that are whole; none where they are kept. */
  readonly messages: readonly Buffer[];
  /** Messages that are kept and were not read yet. */
  readonly kept: KeptMessages;
  /** What the client is to be sent: answers to its pings and to its close. */
  readonly reply: Buffer | null;
  /** Whether nothing follows, be it that the client closed the connection. */
  readonly isOver: boolean;
  /** How to close the connection of a client that broke a rule. */
  readonly failure: { readonly code: number; readonly reason: string } | null;
}

/** Messages that an appender is to read. */
export interface KeptMessages {
  readonly count: number;
  readonly bytes: number;
}

/** Reads the frames that the client of a WebSocket sends. */
export class WebSocketReader {
  /** For the engine. */
  readonly native: NativeWebSocket;

  /** No message may be longer. Those that are kept go to an appender, and never come here. */
  constructor(mostMessageBytes: number, keepsMessages = false) {
    this.native = new native.NativeWebSocket(mostMessageBytes, keepsMessages);
  }

  /** Takes what came of the socket; `bytes` are empty afterwards where nothing else shares them. */
  receive(bytes: Buffer): ReceivedFrames {
    const received = decodedSync(() => {
      return this.native.receive(wholeMemory(bytes) ?? Uint8Array.from(bytes).buffer);
    });
    const { messages, kept, keptBytes, reply, isOver, closeCode, reason } = received;
    return {
      messages,
      kept: { count: kept, bytes: keptBytes },
      reply: reply ?? null,
      isOver,
      failure: closeCode === undefined ? null : { code: closeCode, reason: reason ?? '' },
    };
  }
}
