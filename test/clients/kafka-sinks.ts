/** What JDBC sinks of Kafka Connect sent to a server, recorded by `record-kafka-sinks.ts`. */
import { SOURCES } from './tools.js';

export const SINKS_FILE = new URL('kafka-connect/recorded.json', SOURCES);

export interface RecordedSink {
  /** The configuration of the page when it was recorded. */
  readonly config: string;
  /** For each connection, its messages after the login, in base64, up to each Sync. */
  readonly connections: readonly (readonly string[])[];
}
