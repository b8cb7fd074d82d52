/** Frames of WebSockets, read by the addon. */
import { native, type NativeWebSocket } from './addon.js';
import { decodedSync } from './decode.js';

/** What bytes of a WebSocket came to. */
interface ReceivedFrames {
  /** Those that are whole. */
  readonly messages: readonly Buffer[];
  /** What the client is to be sent: answers to its pings and to its close. */
  readonly reply: Buffer | null;
  /** Whether nothing follows, be it that the client closed the connection. */
  readonly isOver: boolean;
  /** How to close the connection of a client that broke a rule. */
  readonly failure: { readonly code: number; readonly reason: string } | null;
}

/** Reads the frames that the client of a WebSocket sends. */
export class WebSocketReader {
  readonly #native: NativeWebSocket;

  /** No message may be longer. */
  constructor(mostMessageBytes: number) {
    this.#native = new native.NativeWebSocket(mostMessageBytes);
  }

  receive(bytes: Buffer): ReceivedFrames {
    const { messages, reply, isOver, closeCode, reason } = decodedSync(() =>
      this.#native.receive(bytes),
    );
    const failure = closeCode === undefined ? null : { code: closeCode, reason: reason ?? '' };
    return { messages, reply: reply ?? null, isOver, failure };
  }
}
