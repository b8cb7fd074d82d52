/** An error the protocol itself finds; the engine's come as `DatabaseError`. */
export class ProtocolError extends Error {
  readonly sqlState: string;
  /** The connection cannot go on. */
  readonly fatal: boolean;

  constructor(sqlState: string, message: string, fatal = false) {
    super(message);
    this.name = 'ProtocolError';
    this.sqlState = sqlState;
    this.fatal = fatal;
  }
}
