/** What came in by which protocol: rows, bytes, commits, errors. */
import type { Counter, MetricsRegistry } from './metrics.js';

/** The counters of one protocol. */
export interface ProtocolMetrics {
  readonly rows: Counter;
  readonly bytes: Counter;
  readonly commits: Counter;
  readonly errors: Counter;
}

/** Ways in; each has its counters from the start, so that rates begin at zero. */
type IngestProtocol = 'line_http' | 'line_tcp' | 'qwp';

export class IngestMetrics {
  readonly #protocols: Readonly<Record<IngestProtocol, ProtocolMetrics>>;

  constructor(registry: MetricsRegistry) {
    const of = (protocol: IngestProtocol): ProtocolMetrics => ({
      rows: registry.counter('ingest_rows_total', 'Rows committed.', { protocol }),
      bytes: registry.counter('ingest_bytes_total', 'Bytes received, inflated.', { protocol }),
      commits: registry.counter('ingest_commits_total', 'Commits of rows.', { protocol }),
      errors: registry.counter(
        'ingest_errors_total',
        'Requests, or lines of a connection, that were refused.',
        { protocol },
      ),
    });
    this.#protocols = {
      line_http: of('line_http'),
      line_tcp: of('line_tcp'),
      qwp: of('qwp'),
    };
  }

  of(protocol: IngestProtocol): ProtocolMetrics {
    return this.#protocols[protocol];
  }
}
