/** An error the protocol itself finds; the engine's come as `DatabaseError`. */
export class ProtocolError extends Error {
  readonly sqlState: string;
  /** The connection cannot go on. */
  readonly fatal: boolean;
  /** Where in the data of a COPY. */
  readonly where: string | undefined;

  constructor(sqlState: string, message: string, fatal = false, where?: string) {
    super(message);
    this.name = 'ProtocolError';
    this.sqlState = sqlState;
    this.fatal = fatal;
    this.where = where;
  }
}
