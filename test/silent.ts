/** A logger that writes nothing. */
import { createLogger, type Logger } from '../ts/observability/index.js';

export const SILENT: Logger = createLogger({ level: 'error', write: () => undefined });
