/** Ingestion metrics by protocol: rows, bytes, commits and errors. */
import type { Counter, Histogram, MetricsRegistry } from './metrics.js';

/** One protocol's counters. */
export interface ProtocolMetrics {
  readonly rows: Counter;
  readonly bytes: Counter;
  readonly commits: Counter;
  readonly errors: Counter;
  readonly commitSeconds: Histogram;
  /** Time from the start of a request to its response; `null` for a protocol without responses. */
  readonly requestSeconds: Histogram | null;
}

/**
 * Ingestion protocols. The counters of all protocols exist from the start, so that rates begin at
 * zero.
 */
type IngestProtocol = 'line_http' | 'line_tcp' | 'qwp';

export class IngestMetrics {
  readonly #protocols: Readonly<Record<IngestProtocol, ProtocolMetrics>>;

  constructor(registry: MetricsRegistry) {
    const of = (protocol: IngestProtocol): ProtocolMetrics => ({
      rows: registry.counter('ingest_rows_total', 'Rows committed.', { protocol }),
      bytes: registry.counter('ingest_bytes_total', 'Decompressed bytes received.', { protocol }),
      commits: registry.counter('ingest_commits_total', 'Commits that contain rows.', { protocol }),
      errors: registry.counter(
        'ingest_errors_total',
        'Rejected requests, or rejected lines for the line protocol over TCP.',
        { protocol },
      ),
      commitSeconds: registry.histogram(
        'ingest_commit_seconds',
        'Commit duration in seconds, not including the time taken to read its rows.',
        { protocol },
      ),
      requestSeconds:
        protocol === 'line_tcp'
          ? null
          : registry.histogram(
              'ingest_request_seconds',
              'Seconds from the start of a request or message to its response.',
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
