/** Structured logging, metrics and host limits. */
export { BoundedLog, refusedLogins } from './bounded-log.js';
export { hostWarnings } from './host-limits.js';
export { LogFile } from './log-file.js';
export { createLogger, type Logger } from './logger.js';
export { MetricsRegistry } from './metrics.js';
export { type IngestMetrics, type ProtocolMetrics } from './ingest-metrics.js';
export { type ListenerName, ServerMetrics, type StatementMetrics } from './server-metrics.js';
