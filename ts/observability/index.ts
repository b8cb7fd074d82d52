/** Structured log lines and metrics. */
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
