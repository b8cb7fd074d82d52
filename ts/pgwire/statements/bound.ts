/** A conversation's prepared statements, and the portals bound from them. */
import {
  type DeclareCursor,
  type ExecuteStatement,
  type ParameterTypes,
  type ParsedStatement,
  type PreparedStatement,
  type SessionStatement,
  splitStatements,
} from '../../session/index.js';
import { BoundValues } from './bound-values.js';
import type { BindMessage } from '../protocol/client-messages.js';
import { located, shifted } from '../protocol/failure.js';
import { formatCodes } from './format-codes.js';
import { Portal } from './portal.js';
import type { Scroll } from './scroll.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { declaredType, oidOf } from '../protocol/type-oids.js';

/** Maximum number of parameters per statement; the count is an unsigned 16-bit number. */
const PARAMETERS_MAX = 65_535;

/** A statement prepared by Parse. */
export type Stored =
  | { readonly kind: 'empty' }
  | { readonly kind: 'session'; readonly statement: SessionStatement }
  | {
      readonly kind: 'engine';
      readonly prepared: PreparedStatement;
      readonly oids: readonly number[];
      /**
       * The cursor that the statement declares when it is executed, if any, and the types of the
       * parameters.
       */
      readonly declares: DeclareCursor | null;
      readonly types: ParameterTypes;
    };

export function closeStored(stored: Stored | undefined): void {
  if (stored?.kind === 'engine') {
    stored.prepared.close();
  }
}

/** The conversation interface for preparing statements. */
interface StoreSetting {
  read(text: string): ParsedStatement;
  prepare(text: string | ParsedStatement, types: ParameterTypes): Promise<PreparedStatement>;
}

/** Prepares the SQL text of a Parse message; `types` are the declared parameter OIDs. */
export async function storedOf(
  text: string,
  types: readonly number[],
  setting: StoreSetting,
): Promise<Stored> {
  const [first, ...remaining] = splitStatements(text);
  if (first === undefined) {
    return { kind: 'empty' };
  }
  if (remaining.length > 0) {
    throw new ProtocolError('42601', 'cannot insert multiple commands into a prepared statement');
  }
  try {
    return await storedStatement(first.text, types, setting);
  } catch (error) {
    throw located(error, text, first.start);
  }
}

/** Prepares a single statement; `types` are the declared parameter OIDs. */
export async function storedStatement(
  text: string,
  types: readonly number[],
  setting: StoreSetting,
): Promise<Stored> {
  const read = setting.read(text);
  const session = read.dispatch.runner === 'session' ? read.dispatch.statement : null;
  const declares = session?.kind === 'DeclareCursor' ? session : null;
  if (session !== null && declares === null) {
    return { kind: 'session', statement: session };
  }
  const declared = types.map(declaredType);
  const preparing = setting.prepare(declares?.query.text ?? read, declared);
  const prepared = await preparing.catch((error: unknown) => {
    throw declares === null ? error : shifted(error, declares.query.start);
  });
  const oids = prepared.description.parameters.map((type, index) => {
    const oid = types[index] ?? 0;
    return oid === 0 ? oidOf(type) : oid;
  });
  return { kind: 'engine', prepared, oids, declares, types: declared };
}

/** Additional state of a portal that was created by DECLARE. */
interface CursorState {
  /** Closed together with the portal. */
  readonly statement: { close(): void };
  readonly binary: boolean;
  /** The cursor's buffered rows, if it is scrollable. */
  readonly scroll: Scroll | null;
  readonly hold: boolean;
  /** Whether the declaring block has been committed. */
  committed: boolean;
}

/** An EXECUTE. Its portal exists from the first Execute message on. */
export interface BoundExecute {
  readonly kind: 'execute';
  readonly statement: ExecuteStatement;
  readonly formats: readonly number[];
  portal: Portal | null;
  done: boolean;
}

export type Bound =
  | { readonly kind: 'empty' }
  | BoundExecute
  | {
      readonly kind: 'session';
      readonly statement: SessionStatement;
      readonly formats: readonly number[];
    }
  | {
      readonly kind: 'declare';
      readonly declares: DeclareCursor;
      readonly types: ParameterTypes;
      readonly values: BoundValues;
    }
  | { readonly kind: 'engine'; readonly portal: Portal; done: boolean; cursor?: CursorState };

export function boundExecute(
  statement: ExecuteStatement,
  formats: readonly number[] = [],
): BoundExecute {
  return { kind: 'execute', statement, formats, portal: null, done: false };
}

/** Binds a statement to the values of a Bind message. */
export function boundOf(stored: Stored, message: BindMessage): Bound {
  if (stored.kind === 'empty') {
    return stored;
  }
  if (stored.kind === 'session') {
    const { statement } = stored;
    const formats = message.resultFormats;
    return statement.kind === 'Execute'
      ? boundExecute(statement, formats)
      : { kind: 'session', statement, formats };
  }
  const { prepared, oids } = stored;
  const { count } = message.parameters;
  if (count !== oids.length || count > PARAMETERS_MAX) {
    const given = `bind message supplies ${count} parameters`;
    throw new ProtocolError('08P01', `${given}, but the statement requires ${oids.length}`);
  }
  const values = BoundValues.ofBind(message, oids);
  if (stored.declares !== null) {
    return { kind: 'declare', declares: stored.declares, types: stored.types, values };
  }
  const formats = formatCodes(message.resultFormats, prepared.description.columns.length, 'result');
  return { kind: 'engine', portal: new Portal(prepared, values, formats), done: false };
}
