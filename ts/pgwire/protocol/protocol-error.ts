/** An error that the protocol code detects; errors from the engine are `DatabaseError`. */
export class ProtocolError extends Error {
  readonly sqlState: string;
  /** Whether the connection must end. */
  readonly fatal: boolean;
  /** Position in the COPY data, if any. */
  readonly where: string | undefined;

  constructor(sqlState: string, message: string, fatal = false, where?: string) {
    super(message);
    this.name = 'ProtocolError';
    this.sqlState = sqlState;
    this.fatal = fatal;
    this.where = where;
  }
}
