/** PREPARE and EXECUTE: prepared statements in SQL, which share their names with the protocol's. */
import {
  type ExecuteStatement,
  ParameterBatch,
  type ParameterTypes,
  parameterHeader,
  type ParsedStatement,
  type PreparedStatement,
  type PrepareStatement,
} from '../../session/index.js';
import { type Stored, storedStatement } from './bound.js';
import { BoundValues } from './bound-values.js';
import { inData, shifted } from '../protocol/failure.js';
import { Portal, type PortalRun, type Send } from './portal.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import type { Statements } from './statements.js';
import { isIntegerArray, namedOid } from '../protocol/type-oids.js';

/** The conversation interface that PREPARE and EXECUTE need. */
interface SqlStatementSetting {
  readonly statements: Statements;
  read(text: string): ParsedStatement;
  prepare(text: string | ParsedStatement, types?: ParameterTypes): Promise<PreparedStatement>;
  run(portal: Portal, maxRows: number, send: Send): Promise<PortalRun>;
}

type EngineStatement = Extract<Stored, { kind: 'engine' }>;

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

  /** Returns a prepared statement with the values of an EXECUTE. */
  async bind({ name, values }: ExecuteStatement): Promise<[PreparedStatement, BoundValues]> {
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
    // The parentheses keep each value a single expression.
    const row = await this.evaluate(`SELECT ${values.map(({ text }) => `(${text})`).join(', ')}`);
    oids.forEach((oid, index) => {
      row[index] = isIntegerArray(oid)
        ? withoutFractions(row[index] ?? null)
        : (row[index] ?? null);
    });
    const header = parameterHeader(oids.map((oid) => ({ format: 0, oid })));
    return [prepared, BoundValues.of(ParameterBatch.of([row], header))];
  }

  /** Returns the prepared statement that EXECUTE runs. */
  get(name: string): EngineStatement {
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
      const chunks: Buffer[] = [];
      const run = await this.setting.run(portal, 0, (bytes) => {
        chunks.push(Buffer.from(bytes));
        return Promise.resolve();
      });
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

/** Removes `.0` from the numbers of an array, because ARRAY[1, 2] has numbers of type DOUBLE. */
function withoutFractions(array: string | null): string | null {
  return array?.replaceAll(/\.0(?=[,}])/g, '') ?? null;
}

function isPreparable(stored: Stored): boolean {
  if (stored.kind !== 'engine' || stored.declares !== null) {
    return false;
  }
  const { kind } = stored.prepared.description;
  return kind === 'select' || kind === 'insert' || kind === 'update';
}

function closeStored(stored: Stored): void {
  if (stored.kind === 'engine') {
    stored.prepared.close();
  }
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
