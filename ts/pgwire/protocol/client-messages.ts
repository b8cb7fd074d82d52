/** Decodes client messages. A truncated or overlong message is refused. */
import { isAscii } from 'node:buffer';

import type { Frame } from './frames.js';
import { ProtocolError } from './protocol-error.js';

const CANCEL_CODE = 80_877_102;
const SSL_CODE = 80_877_103;
const GSS_CODE = 80_877_104;

export type StartupMessage =
  | { readonly kind: 'ssl' | 'gss' }
  | { readonly kind: 'cancel'; readonly processId: number; readonly secret: Buffer }
  | {
      readonly kind: 'startup';
      readonly major: number;
      readonly minor: number;
      readonly parameters: ReadonlyMap<string, string>;
    };

export interface BindMessage {
  readonly kind: 'bind';
  readonly portal: string;
  readonly statement: string;
  readonly parameterFormats: readonly number[];
  readonly parameters: BoundParameters;
  readonly resultFormats: readonly number[];
}

export type ClientMessage =
  | BindMessage
  | { readonly kind: 'query'; readonly text: string }
  | {
      readonly kind: 'parse';
      readonly name: string;
      readonly text: string;
      readonly types: readonly number[];
    }
  | { readonly kind: 'describe' | 'close'; readonly what: 'S' | 'P'; readonly name: string }
  | { readonly kind: 'execute'; readonly portal: string; readonly maxRows: number }
  | { readonly kind: 'sync' | 'flush' | 'terminate' | 'copyDone' | 'functionCall' }
  | { readonly kind: 'copyData'; readonly bytes: Buffer }
  | { readonly kind: 'copyFail'; readonly reason: string }
  | { readonly kind: 'password'; readonly body: Buffer };

const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Decodes strict UTF-8. */
export function decodeText(bytes: Buffer): string {
  if (isAscii(bytes)) {
    return bytes.toString('latin1');
  }
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new ProtocolError('22021', 'invalid byte sequence for encoding "UTF8"');
  }
}

/**
 * Maximum length in bytes of an ASCII string that is decoded without creating a view of its bytes.
 * Most strings are short and ASCII.
 */
const SHORT_BYTES = 64;

function decodeRange(bytes: Buffer, start: number, end: number): string {
  let at = end - start > SHORT_BYTES ? end + 1 : start;
  while (at < end && (bytes[at] ?? 0) < 128) {
    at += 1;
  }
  return at === end ? bytes.toString('latin1', start, end) : decodeText(bytes.subarray(start, end));
}

/** Reads a message body sequentially. */
class BodyReader {
  readonly body: Buffer;
  private at: number;

  constructor(body: Buffer, at = 0) {
    this.body = body;
    this.at = at;
  }

  /** The current offset. */
  get offset(): number {
    return this.at;
  }

  int16(): number {
    return this.body.readInt16BE(this.pass(2));
  }

  uint16(): number {
    return this.body.readUInt16BE(this.pass(2));
  }

  int32(): number {
    return this.body.readInt32BE(this.pass(4));
  }

  uint32(): number {
    return this.body.readUInt32BE(this.pass(4));
  }

  /** Reads a NUL-terminated string. */
  text(): string {
    const end = this.body.indexOf(0, this.at);
    if (end < 0) {
      throw cutShort();
    }
    // Most names are empty.
    const text = end === this.at ? '' : decodeRange(this.body, this.at, end);
    this.at = end + 1;
    return text;
  }

  bytes(count: number): Buffer {
    const start = this.pass(count);
    return this.body.subarray(start, start + count);
  }

  get remaining(): number {
    return this.body.length - this.at;
  }

  end(): void {
    if (this.remaining !== 0) {
      throw new ProtocolError('08P01', 'invalid message format');
    }
  }

  /** Skips `count` bytes and returns their start; throws if fewer bytes remain. */
  pass(count: number): number {
    if (count < 0 || this.remaining < count) {
      throw cutShort();
    }
    const start = this.at;
    this.at += count;
    return start;
  }
}

function cutShort(): ProtocolError {
  return new ProtocolError('08P01', 'insufficient data left in message');
}

export function readStartup(frame: Frame): StartupMessage {
  const body = new BodyReader(frame.body);
  const code = body.int32();
  if (code === SSL_CODE) {
    return { kind: 'ssl' };
  }
  if (code === GSS_CODE) {
    return { kind: 'gss' };
  }
  if (code === CANCEL_CODE) {
    return { kind: 'cancel', processId: body.int32(), secret: body.bytes(body.remaining) };
  }
  const parameters = new Map<string, string>();
  if (code >>> 16 !== 3) {
    return { kind: 'startup', major: code >>> 16, minor: 0, parameters };
  }
  for (let name = body.text(); name !== ''; name = body.text()) {
    parameters.set(name, body.text());
  }
  body.end();
  return { kind: 'startup', major: 3, minor: code & 0xffff, parameters };
}

/** Messages whose bodies may contain unread bytes at the end. */
const UNPARSED_BODIES: ReadonlySet<string> = new Set(['password', 'copyData', 'functionCall']);

export function readMessage(frame: Frame): ClientMessage {
  const body = new BodyReader(frame.body);
  const message = readBody(frame, body);
  if (!UNPARSED_BODIES.has(message.kind)) {
    body.end();
  }
  return message;
}

function readBody(frame: Frame, body: BodyReader): ClientMessage {
  switch (frame.type) {
    case 'Q':
      return { kind: 'query', text: body.text() };
    case 'P':
      return readParse(body);
    case 'B':
      return readBind(body);
    case 'D':
    case 'C':
      return readTarget(frame.type === 'D' ? 'describe' : 'close', body);
    case 'E':
      return { kind: 'execute', portal: body.text(), maxRows: body.int32() };
    case 'S':
      return { kind: 'sync' };
    case 'H':
      return { kind: 'flush' };
    case 'X':
      return { kind: 'terminate' };
    case 'p':
      return { kind: 'password', body: frame.body };
    case 'F':
      return { kind: 'functionCall' };
    case 'd':
      return { kind: 'copyData', bytes: frame.body };
    case 'c':
      return { kind: 'copyDone' };
    case 'f':
      return { kind: 'copyFail', reason: body.text() };
    default:
      throw new ProtocolError(
        '08P01',
        `invalid frontend message type ${frame.type.charCodeAt(0)}`,
        true,
      );
  }
}

function readParse(body: BodyReader): ClientMessage {
  const name = body.text();
  const text = body.text();
  const types = repeat(body.uint16(), () => body.uint32());
  return { kind: 'parse', name, text, types };
}

/** A shared list, because most Bind messages have no formats. */
const NO_CODES: readonly number[] = [];

/**
 * The values of a Bind message, which remain in the message. Their lengths have been checked; the
 * engine decodes them.
 */
export class BoundParameters {
  readonly count: number;
  readonly body: Buffer;
  /** Offset of the value count; `end` is the offset of the end of the values. */
  readonly start: number;
  readonly end: number;

  constructor(reader: BodyReader) {
    this.body = reader.body;
    this.start = reader.offset;
    this.count = reader.uint16();
    for (let index = 0; index < this.count; index += 1) {
      const length = reader.int32();
      if (length !== -1) {
        reader.pass(length);
      }
    }
    this.end = reader.offset;
  }
}

function readBind(body: BodyReader): BindMessage {
  const portal = body.text();
  const statement = body.text();
  const parameterFormats = readCodes(body);
  const parameters = new BoundParameters(body);
  const resultFormats = readCodes(body);
  return { kind: 'bind', portal, statement, parameterFormats, parameters, resultFormats };
}

function readCodes(body: BodyReader): readonly number[] {
  const count = body.uint16();
  return count === 0 ? NO_CODES : repeat(count, () => body.int16());
}

function repeat<T>(count: number, read: () => T): T[] {
  const all: T[] = [];
  for (let index = 0; index < count; index += 1) {
    all.push(read());
  }
  return all;
}

function readTarget(kind: 'describe' | 'close', body: BodyReader): ClientMessage {
  const what = String.fromCharCode(body.bytes(1)[0] ?? 0);
  if (what !== 'S' && what !== 'P') {
    throw new ProtocolError('08P01', `invalid ${kind.toUpperCase()} message subtype`);
  }
  return { kind, what, name: body.text() };
}
