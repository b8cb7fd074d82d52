/** Structured log lines, metrics, and what the host lacks. */
export { hostWarnings, type HostWarning } from './host-limits.js';
export {
  createLogger,
  LOG_LEVELS,
  type LogFields,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  redactText,
  SILENT,
} from './logger.js';
export { Counter, MetricsRegistry } from './metrics.js';
