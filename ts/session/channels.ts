/** Channels through which sessions send messages to each other. */

/** A message sent by NOTIFY. */
export interface Notification {
  readonly channel: string;
  readonly payload: string;
  /** Process id of the sending connection; 0 for the server. */
  readonly backend: number;
}

type Receive = (notification: Notification) => void;

export class Channels {
  readonly #listeners = new Map<string, Set<Receive>>();

  /** Returns a function that stops listening. */
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
