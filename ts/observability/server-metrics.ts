/** All server metrics, in display order. */
import { statfsSync } from 'node:fs';

import { registerEngineMetrics } from './engine-metrics.js';
import { IngestMetrics } from './ingest-metrics.js';
import { type Histogram, MetricsRegistry } from './metrics.js';
import { registerProcessMetrics } from './process-metrics.js';

/** Protocols that accept statements. */
type StatementProtocol = 'http' | 'pgwire' | 'qwp';
/** Statement durations by protocol. */
export type StatementMetrics = Readonly<Record<StatementProtocol, Histogram>>;

const LISTENERS = ['http', 'http_min', 'pgwire', 'line_tcp'] as const;
/** Names of the listeners in metric labels. */
export type ListenerName = (typeof LISTENERS)[number];

/** Sources of metric values. */
interface MetricSources {
  /** Engine metrics, keyed by name. */
  readonly engine: () => Readonly<Record<string, number>>;
  /** Number of open connections; `null` if the listener is off. */
  readonly connections: (listener: ListenerName) => number | null;
  /** Number of bytes in uncommitted lines. */
  readonly waitingLines: () => number | null;
  /** The root directory. */
  readonly root: string;
}

export class ServerMetrics {
  readonly registry = new MetricsRegistry();
  readonly ingest = new IngestMetrics(this.registry);
  readonly statements: StatementMetrics;

  constructor(sources: MetricSources) {
    const { registry } = this;
    registry.gauge(
      'line_tcp_waiting_bytes',
      'Uncommitted bytes received through the line protocol over TCP.',
      sources.waitingLines,
    );
    for (const protocol of LISTENERS) {
      const read = (): number | null => sources.connections(protocol);
      registry.gauge('connections', 'Open connections.', read, { protocol });
    }
    const seconds = (protocol: StatementProtocol): Histogram =>
      registry.histogram(
        'statement_seconds',
        'Seconds from the arrival of a statement to its last row, including waits for the client.',
        { protocol },
      );
    this.statements = { http: seconds('http'), pgwire: seconds('pgwire'), qwp: seconds('qwp') };
    registerEngineMetrics(registry, sources.engine);
    const disk = (field: 'bavail' | 'blocks') => (): number | null =>
      diskBytes(sources.root, field);
    registry.gauge('storage_free_bytes', 'Free space on the data disk in bytes.', disk('bavail'));
    registry.gauge('storage_size_bytes', 'Size of the data disk in bytes.', disk('blocks'));
    registerProcessMetrics(registry);
  }
}

function diskBytes(root: string, field: 'bavail' | 'blocks'): number | null {
  try {
    const stats = statfsSync(root);
    return stats[field] * stats.bsize;
  } catch {
    return null; // the system does not tell
  }
}
