/** Structured log lines, metrics, and what the host lacks. */
export { hostWarnings } from './host-limits.js';
export { createLogger, type Logger } from './logger.js';
export { MetricsRegistry } from './metrics.js';
