/** Channels by which sessions send each other messages. */

/** What NOTIFY sends. */
export interface Notification {
  readonly channel: string;
  readonly payload: string;
  /** The number of the connection that sent it; 0: the server. */
  readonly backend: number;
}

type Receive = (notification: Notification) => void;

export class Channels {
  readonly #listeners = new Map<string, Set<Receive>>();

  /** Returns what ends it. */
  listen(channel: string, receive: Receive): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    listeners.add(receive);
    return () => {
      listeners.delete(receive);
      if (listeners.size === 0 && this.#listeners.get(channel) === listeners) {
        this.#listeners.delete(channel);
      }
    };
  }

  notify(notification: Notification): void {
    for (const receive of this.#listeners.get(notification.channel) ?? []) {
      receive(notification);
    }
  }
}
