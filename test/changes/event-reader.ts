/** A GET /changes client that reads on demand, and a consumer that applies the events. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

import type { TestServer } from '../golden/server.js';
import { within } from '../until.js';

interface FeedEvent {
  readonly name: string;
  readonly id: string | null;
  readonly data: {
    readonly table?: string;
    readonly columns?: readonly { readonly name: string; readonly type: string }[];
    readonly timestamp?: number;
    readonly txn?: number;
    readonly count?: number;
    readonly dataset?: readonly (readonly unknown[])[];
    readonly ranges?: readonly { readonly from: string | null; readonly to: string | null }[];
    readonly error?: string;
  };
}

export interface FeedRequest {
  readonly table?: string;
  readonly columns?: string;
  readonly where?: string;
  readonly query?: string;
  readonly from?: string;
  readonly quoteLargeNum?: string;
  /** Id of the last event received. */
  readonly lastId?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export class EventReader {
  readonly response: IncomingMessage;
  /** Number of received comments. */
  comments = 0;
  readonly #chunks: AsyncIterator<string, undefined>;
  #text = '';
  /** Id of the last event. */
  #last = '';

  private constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8');
    this.#chunks = response[Symbol.asyncIterator]() as AsyncIterator<string, undefined>;
  }

  static async open(
    server: Pick<TestServer, 'url'>,
    { lastId, headers, ...parameters }: FeedRequest,
  ): Promise<EventReader> {
    const url = `${server.url}/changes?${new URLSearchParams(parameters).toString()}`;
    const last = lastId === undefined ? {} : { 'Last-Event-ID': lastId };
    const request = get(url, { agent: false, headers: { ...headers, ...last } });
    const [response] = (await within(once(request, 'response'), () => url)) as [IncomingMessage];
    return new EventReader(response);
  }

  get status(): number {
    return this.response.statusCode ?? 0;
  }

  /** Returns the next event; null at the end. */
  async next(): Promise<FeedEvent | null> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end < 0) {
        const { value } = await within(this.#chunks.next(), () => 'an event');
        if (value === undefined) {
          return null;
        }
        this.#text += value;
        continue;
      }
      const text = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 2);
      this.#last = text;
      if (text.startsWith(':')) {
        this.comments += 1;
      } else {
        return parseEvent(text);
      }
    }
  }

  /** Returns the next event with this name, skipping earlier events. */
  async find(name: string): Promise<FeedEvent> {
    for (;;) {
      const event = await this.next();
      if (event === null) {
        throw new Error(`${this.status}: no '${name}' before the end: ${this.#last}${this.#text}`);
      }
      if (event.name === name) {
        return event;
      }
    }
  }

  /** Returns the remaining body of a response that is not a feed. */
  async body(): Promise<string> {
    let text = this.#text;
    for (;;) {
      const { value } = await this.#chunks.next();
      if (value === undefined) {
        return text;
      }
      text += value;
    }
  }

  close(): void {
    this.response.destroy();
  }
}

function parseEvent(text: string): FeedEvent {
  const fields = new Map(
    text.split('\n').map((line) => {
      const at = line.indexOf(': ');
      return [line.slice(0, at), line.slice(at + 2)] as const;
    }),
  );
  const data = JSON.parse(fields.get('data') ?? '{}') as FeedEvent['data'];
  return { name: fields.get('event') ?? '', id: fields.get('id') ?? null, data };
}

/** Maintains the rows that a feed reports, and resumes where it left off. */
export class Consumer {
  /** Id of the last event received. */
  lastId: string | undefined;
  /** Rows that arrived in `rows` events, not in ranges. */
  readonly added: (readonly unknown[])[] = [];
  #rows: (readonly unknown[])[] = [];
  #time = 0;
  /** Events since the last `id`, which are sent again after a reconnect. */
  #open: FeedEvent[] = [];

  get txn(): number {
    return Number(this.lastId?.split('-')[0] ?? -1);
  }

  /** Returns the rows in sorted order. */
  get rows(): string[] {
    return this.#rows.map((row) => JSON.stringify(row)).sort();
  }

  /** Resets the state for a new connection. */
  begin(): void {
    this.#open = [];
  }

  take(event: FeedEvent): void {
    if (event.name === 'error') {
      throw new Error(event.data.error);
    }
    if (event.name === 'schema') {
      this.#time = event.data.timestamp ?? 0;
      return;
    }
    this.#open.push(event);
    if (event.id !== null) {
      const isRange = this.#open.some(({ name }) => name === 'range');
      for (const one of this.#open) {
        this.#apply(one, isRange);
      }
      this.#open = [];
      this.lastId = event.id;
    }
  }

  #apply({ data: { ranges, dataset = [] } }: FeedEvent, isRange: boolean): void {
    for (const { from, to } of ranges ?? []) {
      this.#rows = this.#rows.filter((row) => {
        const time = String(row[this.#time]);
        return (from !== null && time < from) || (to !== null && time > to);
      });
    }
    this.#rows.push(...dataset);
    if (!isRange) {
      this.added.push(...dataset);
    }
  }

  /** Reads a feed up to a transaction. */
  async read(reader: EventReader, txn: number): Promise<void> {
    while (this.txn < txn) {
      const event = await reader.next();
      if (event === null) {
        throw new Error(`the feed ended at ${this.lastId ?? 'its beginning'}`);
      }
      this.take(event);
    }
  }
}

/** Returns the last transaction of the database. */
export async function currentTxn(server: TestServer, table: string): Promise<number> {
  const reader = await EventReader.open(server, { table });
  const { data } = await reader.find('position');
  reader.close();
  return data.txn ?? 0;
}
