/** PREPARE and EXECUTE: prepared statements in SQL, which share their names with the protocol's. */
import {
  type ExecuteStatement,
  ParameterBatch,
  type ParameterTypes,
  parameterHeader,
  type ParsedStatement,
  type PreparedStatement,
  type PrepareStatement,
  type StatementDescription,
} from '../../session/index.js';
import { type BoundExecute, closeStored, type Stored, storedStatement } from './bound.js';
import { BoundValues } from './bound-values.js';
import { inData, shifted } from '../protocol/failure.js';
import { formatCodes } from './format-codes.js';
import { type Executable, Portal, type PortalRun, type Send } from './portal.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import type { Statements } from './statements.js';
import { describeRows, isIntegerArray, namedOid } from '../protocol/type-oids.js';

/** The conversation interface that PREPARE and EXECUTE need. */
interface SqlStatementSetting {
  readonly statements: Statements;
  read(text: string): ParsedStatement;
  prepare(text: string | ParsedStatement, types?: ParameterTypes): Promise<PreparedStatement>;
  /** Runs a query that is part of a statement, within the time limit of that statement. */
  runPart(portal: Portal, maxRows: number, send: Send): Promise<PortalRun>;
  /** Runs a portal and sends its result; returns true when all rows have been sent. */
  runPortal(portal: Portal, maxRows: number): Promise<boolean>;
  /** Throws if the statement writes in a read-only transaction. */
  refuseWrite(statement: Executable): void;
}

type Describe = (description: StatementDescription) => void;
type EngineStatement = Extract<Stored, { kind: 'engine' }>;

/** Maximum number of rows to read for the values, of which a second one is an error. */
const MAX_VALUE_ROWS = 2;
const HEADER_BYTES = 5;
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;

export class SqlStatements {
  private readonly setting: SqlStatementSetting;

  constructor(setting: SqlStatementSetting) {
    this.setting = setting;
  }

  /** Prepares a statement under a name; returns the command tag. */
  async prepare({ name, types, statement }: PrepareStatement): Promise<string> {
    const { statements } = this.setting;
    if (name === '') {
      throw new ProtocolError('42601', 'the name of a prepared statement cannot be empty');
    }
    statements.reserve(name);
    const oids = types.map((type) => {
      const oid = namedOid(type.name, type.dimensions > 0);
      if (oid === undefined) {
        throw new ProtocolError('42704', `type "${type.name}" does not exist for parameters`);
      }
      return oid;
    });
    const stored = await storedStatement(statement.text, oids, this.setting).catch(
      (error: unknown) => {
        throw shifted(error, statement.start);
      },
    );
    if (!isPreparable(stored)) {
      closeStored(stored);
      const message = 'PREPARE must be for SELECT, INSERT, UPDATE, DELETE or VALUES';
      throw new ProtocolError('42601', message);
    }
    statements.add(name, stored);
    return 'PREPARE';
  }

  /** The row description of an EXECUTE. */
  describe({ statement, formats }: BoundExecute): Buffer {
    const { description } = this.get(statement.name).prepared;
    return describeRows(description, formatCodes(formats, description.columns.length, 'result'));
  }

  /**
   * Runs EXECUTE, and sends at most `maxRows` rows; 0 means all. `describe` is called before the
   * first row if the client does not know the description.
   */
  async execute(bound: BoundExecute, maxRows: number, describe: Describe | null): Promise<void> {
    if (bound.done) {
      throw new ProtocolError('55000', 'an EXECUTE cannot be run again: bind it again');
    }
    // A failed EXECUTE cannot be run again either.
    bound.done = true;
    bound.portal ??= await this.portalOf(bound, describe);
    bound.done = await this.setting.runPortal(bound.portal, maxRows).catch((error: unknown) => {
      // The position would refer to the text of PREPARE.
      throw inData(error);
    });
  }

  private async portalOf(
    { statement, formats }: BoundExecute,
    describe: Describe | null,
  ): Promise<Portal> {
    const [prepared, values] = await this.bind(statement);
    const codes = formatCodes(formats, prepared.description.columns.length, 'result');
    return new Portal(prepared, values, codes, describe);
  }

  /** Returns a prepared statement with the values of an EXECUTE. */
  private async bind({
    name,
    values,
  }: ExecuteStatement): Promise<[PreparedStatement, BoundValues]> {
    const { prepared, oids } = this.get(name);
    if (values.length !== oids.length) {
      const message = `wrong number of parameters for prepared statement "${name}"`;
      throw new ProtocolError(
        '42601',
        `${message}: expected ${oids.length}, found ${values.length}`,
      );
    }
    if (values.length === 0) {
      return [prepared, BoundValues.none];
    }
    // The parentheses keep each value a single expression. ARRAY[1, 2] has elements of type DOUBLE,
    // whose text is not always that of an integer.
    const expressions = values.map(
      ({ text }, index) => `(${text})${isIntegerArray(oids[index] ?? 0) ? '::long[]' : ''}`,
    );
    const row = await this.evaluate(`SELECT ${expressions.join(', ')}`);
    const header = parameterHeader(oids.map((oid) => ({ format: 0, oid })));
    return [prepared, BoundValues.of(ParameterBatch.of([row], header))];
  }

  /** Returns the prepared statement that EXECUTE runs. */
  private get(name: string): EngineStatement {
    const stored = this.setting.statements.get(name);
    if (stored.kind !== 'engine' || stored.declares !== null) {
      const message = `prepared statement "${name}" is a session statement: EXECUTE cannot run it`;
      throw new ProtocolError('0A000', message);
    }
    return stored;
  }

  /** Evaluates a query that returns one row; returns its values as text. */
  private async evaluate(text: string): Promise<(string | null)[]> {
    const query = await this.setting.prepare(text).catch((error: unknown) => {
      // The position would refer to this query, which the client does not know.
      throw inData(error);
    });
    try {
      const { columns, parameters } = query.description;
      if (parameters.length > 0) {
        throw new ProtocolError('42P02', 'there is no parameter $1');
      }
      const portal = new Portal(
        query,
        BoundValues.none,
        columns.map(() => 0),
      );
      portal.exact = true;
      this.setting.refuseWrite(query);
      const chunks: Buffer[] = [];
      const run = await this.setting.runPart(portal, MAX_VALUE_ROWS, (bytes) => {
        chunks.push(Buffer.from(bytes));
        return Promise.resolve();
      });
      portal.close();
      if (run.rows !== 1) {
        throw new ProtocolError('0A000', 'EXECUTE requires single values');
      }
      return fieldsOf(Buffer.concat(chunks)).map((value, index) =>
        columns[index]?.type === 'BINARY' && value !== null
          ? `\\x${value.toString('hex')}`
          : (value?.toString() ?? null),
      );
    } finally {
      query.close();
    }
  }
}

function isPreparable(stored: Stored): boolean {
  if (stored.kind !== 'engine' || stored.declares !== null) {
    return false;
  }
  const { kind } = stored.prepared.description;
  return kind === 'select' || kind === 'insert' || kind === 'update';
}

/** The fields of a DataRow message; `null` is SQL NULL. */
function fieldsOf(message: Buffer): (Buffer | null)[] {
  const count = message.readUInt16BE(HEADER_BYTES);
  const fields: (Buffer | null)[] = [];
  let at = HEADER_BYTES + COUNT_BYTES;
  for (let index = 0; index < count; index += 1) {
    const length = message.readInt32BE(at);
    at += LENGTH_BYTES;
    fields.push(length < 0 ? null : message.subarray(at, at + length));
    at += Math.max(0, length);
  }
  return fields;
}
