/** Incremental parser for server-sent events. It does not access the network. */

export interface ServerEvent {
  /** Name of the event, or `comment` for a keep-alive. */
  readonly name: string;
  /** Position from which a later stream resumes after this event. */
  readonly id: string | undefined;
  readonly data: string;
}

/** Line endings. A CR at the end of a chunk is not matched, because it may be half of a CRLF. */
const LINE_END = /\r\n|\n|\r(?!$)/;

export class EventReader {
  #buffer = '';
  #name = '';
  #id: string | undefined;
  #data: string[] = [];

  /** Parses the next chunk of text and returns the events that are now complete. */
  feed(text: string): ServerEvent[] {
    const lines = (this.#buffer + text).split(LINE_END);
    this.#buffer = lines.pop() ?? '';
    return lines.flatMap((line) => this.#take(line) ?? []);
  }

  #take(line: string): ServerEvent | undefined {
    if (line === '') {
      return this.#end();
    }
    if (line.startsWith(':')) {
      return { name: 'comment', id: undefined, data: line.slice(1).trim() };
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') {
      this.#name = value;
    } else if (field === 'id') {
      this.#id = value;
    } else if (field === 'data') {
      this.#data.push(value);
    }
    return undefined;
  }

  #end(): ServerEvent | undefined {
    const [name, id, data] = [this.#name || 'message', this.#id, this.#data];
    this.#name = '';
    this.#id = undefined;
    this.#data = [];
    return data.length === 0 ? undefined : { name, id, data: data.join('\n') };
  }
}
