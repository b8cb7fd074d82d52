/** Every metric of the server, in the order in which it is shown. */
import { statfsSync } from 'node:fs';

import { registerEngineMetrics } from './engine-metrics.js';
import { IngestMetrics } from './ingest-metrics.js';
import { type Histogram, MetricsRegistry } from './metrics.js';
import { registerProcessMetrics } from './process-metrics.js';

/** How statements come in. */
type StatementProtocol = 'http' | 'pgwire' | 'qwp';
/** How long statements took, by protocol. */
export type StatementMetrics = Readonly<Record<StatementProtocol, Histogram>>;

const LISTENERS = ['http', 'http_min', 'pgwire', 'line_tcp'] as const;
/** A way in, as labels name it. */
export type ListenerName = (typeof LISTENERS)[number];

/** Where figures are read. */
interface MetricSources {
  /** Those of the engine, by their names. */
  readonly engine: () => Readonly<Record<string, number>>;
  /** Open connections; `null`: it does not listen. */
  readonly connections: (listener: ListenerName) => number | null;
  /** Bytes of lines that wait for their commit. */
  readonly waitingLines: () => number | null;
  /** A folder of the data. */
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
      'Bytes of lines over TCP that wait for their commit.',
      sources.waitingLines,
    );
    for (const protocol of LISTENERS) {
      const read = (): number | null => sources.connections(protocol);
      registry.gauge('connections', 'Open connections.', read, { protocol });
    }
    const seconds = (protocol: StatementProtocol): Histogram =>
      registry.histogram(
        'statement_seconds',
        'Seconds from when a statement comes to its last row, however slowly a client reads.',
        { protocol },
      );
    this.statements = { http: seconds('http'), pgwire: seconds('pgwire'), qwp: seconds('qwp') };
    registerEngineMetrics(registry, sources.engine);
    const disk = (part: 'bavail' | 'blocks') => (): number | null => diskBytes(sources.root, part);
    registry.gauge('storage_free_bytes', 'Free bytes on the disk of the data.', disk('bavail'));
    registry.gauge('storage_size_bytes', 'Bytes of that disk.', disk('blocks'));
    registerProcessMetrics(registry);
  }
}

function diskBytes(root: string, part: 'bavail' | 'blocks'): number | null {
  try {
    const found = statfsSync(root);
    return found[part] * found.bsize;
  } catch {
    return null; // the system does not tell
  }
}
