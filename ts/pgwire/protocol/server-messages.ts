/** Encodes server messages. */

/** Fields of ErrorResponse and NoticeResponse. */
interface ReportFields {
  readonly severity: 'ERROR' | 'FATAL' | 'NOTICE' | 'WARNING';
  readonly sqlState: string;
  readonly message: string;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  /** Position in characters, counted from 1. */
  readonly position?: number | undefined;
  /** Position in the data, if any. */
  readonly where?: string | undefined;
  /** The PostgreSQL function name that drivers check for. */
  readonly routine?: string | undefined;
}

/** A message: its type, length and body parts. */
function message(type: string, ...buffers: readonly Buffer[]): Buffer {
  let length = 4;
  for (const buffer of buffers) {
    length += buffer.length;
  }
  const header = Buffer.allocUnsafe(5);
  header.write(type, 0, 'latin1');
  header.writeInt32BE(length, 1);
  return Buffer.concat([header, ...buffers], length + 1);
}

function text(value: string): Buffer {
  return Buffer.from(`${value.replaceAll('\0', '')}\0`, 'utf8');
}

function int16(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 2);
  values.forEach((value, index) => bytes.writeInt16BE(value, index * 2));
  return bytes;
}

function int32(...values: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(values.length * 4);
  values.forEach((value, index) => bytes.writeInt32BE(value | 0, index * 4));
  return bytes;
}

export const authenticationOk = (): Buffer => message('R', int32(0));
export const authenticationCleartext = (): Buffer => message('R', int32(3));

export function authenticationSasl(mechanisms: readonly string[]): Buffer {
  return message('R', int32(10), ...mechanisms.map(text), Buffer.from([0]));
}

export function authenticationSaslContinue(data: string): Buffer {
  return message('R', int32(11), Buffer.from(data, 'utf8'));
}

export function authenticationSaslFinal(data: string): Buffer {
  return message('R', int32(12), Buffer.from(data, 'utf8'));
}

export function parameterStatus(name: string, value: string): Buffer {
  return message('S', text(name), text(value));
}

export function backendKeyData(processId: number, secret: Buffer): Buffer {
  return message('K', int32(processId), secret);
}

export function negotiateProtocolVersion(minor: number, options: readonly string[]): Buffer {
  return message('v', int32(minor, options.length), ...options.map(text));
}

/** `backend`: id of the sender. */
export function notificationResponse(backend: number, channel: string, payload: string): Buffer {
  return message('A', int32(backend), text(channel), text(payload));
}

export function readyForQuery(status: 'I' | 'T' | 'E'): Buffer {
  return message('Z', Buffer.from(status, 'latin1'));
}

export const parseComplete = (): Buffer => message('1');
const BIND_COMPLETE = message('2');
export const bindComplete = (): Buffer => BIND_COMPLETE;
export const closeComplete = (): Buffer => message('3');
export const noData = (): Buffer => message('n');
export const emptyQueryResponse = (): Buffer => message('I');
export const portalSuspended = (): Buffer => message('s');

/** Requests COPY data (`G`) or announces it (`H`), with one format for all columns. */
export function copyResponse(direction: 'in' | 'out', format: 0 | 1, columns: number): Buffer {
  const formats = new Array<number>(columns).fill(format);
  return message(direction === 'in' ? 'G' : 'H', Buffer.from([format]), int16(columns, ...formats));
}

export const copyData = (bytes: Buffer): Buffer => message('d', bytes);
export const copyDone = (): Buffer => message('c');

export function commandComplete(tag: string): Buffer {
  return message('C', text(tag));
}

export function parameterDescription(types: readonly number[]): Buffer {
  return message('t', int16(types.length), int32(...types));
}

/** A column of a RowDescription. */
export interface FieldDescription {
  readonly name: string;
  /**
   * Object ID of the table and number of the column in it. For a computed column, the table is 0
   * and the number is the position in the result.
   */
  readonly table: number;
  readonly column: number;
  readonly oid: number;
  /** Size of a value in bytes; -1 if variable. */
  readonly size: number;
  readonly modifier: number;
  /** Format: 0 is text, 1 is binary. */
  readonly format: number;
}

export function rowDescription(fields: readonly FieldDescription[]): Buffer {
  const buffers = [int16(fields.length)];
  fields.forEach((field) => {
    buffers.push(
      text(field.name),
      int32(field.table),
      int16(field.column),
      int32(field.oid),
      int16(field.size),
      int32(field.modifier),
      int16(field.format),
    );
  });
  return message('T', ...buffers);
}

export function errorResponse(fields: ReportFields): Buffer {
  return report('E', fields);
}

export function noticeResponse(fields: ReportFields): Buffer {
  return report('N', fields);
}

function report(type: string, fields: ReportFields): Buffer {
  const buffers = [text(`S${fields.severity}`), text(`V${fields.severity}`)];
  buffers.push(text(`C${fields.sqlState}`), text(`M${fields.message}`));
  if (fields.detail !== undefined) {
    buffers.push(text(`D${fields.detail}`));
  }
  if (fields.hint !== undefined) {
    buffers.push(text(`H${fields.hint}`));
  }
  if (fields.position !== undefined) {
    buffers.push(text(`P${fields.position}`));
  }
  if (fields.where !== undefined) {
    buffers.push(text(`W${fields.where}`));
  }
  if (fields.routine !== undefined) {
    buffers.push(text(`R${fields.routine}`));
  }
  return message(type, ...buffers, Buffer.from([0]));
}
