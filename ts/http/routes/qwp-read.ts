/** Query results over the columnar protocol: a WebSocket at /read/v1. */
import { KEYS } from '../../config/index.js';
import { Conversation } from '../egress/conversation.js';
import type { BatchOptions } from '../egress/query.js';
import { answerText, type HttpContext, type HttpServices } from '../route.js';
import { LastingLogin } from '../websocket/lasting-login.js';
import type { WebSocketRoute } from '../websocket/route.js';

const READ_PATH = '/read/v1';
/** The only supported protocol version. Each client sends the highest version that it supports. */
const VERSION = '1';
const MAX_LEVEL = 9;
const DEFAULT_LEVEL = 1;

export function readRoutes(services: HttpServices): WebSocketRoute[] {
  const { config, sessions, statements } = services;
  if (!config.get(KEYS.egressEnabled)) {
    return [];
  }
  const readOnly = config.get(KEYS.httpReadOnly);
  const logger = services.logger.child('qwp');
  const limits = {
    statementBytes: config.get(KEYS.egressStatementLimit),
    binds: config.get(KEYS.egressBindsLimit),
  };
  const accept: WebSocketRoute['accept'] = (context) => {
    const { timeouts } = context.state;
    const version = context.get('X-QWP-Max-Version').trim() || VERSION;
    if (!/^[1-9]\d{0,8}$/.test(version)) {
      answerText(context, 400, 'Bad Request: X-QWP-Max-Version must be a number from 1');
      return null;
    }
    const level = requestedLevel(context.get('X-QWP-Accept-Encoding'));
    context.set('X-QWP-Version', VERSION);
    if (level !== null) {
      context.set('X-QWP-Content-Encoding', 'zstd');
    }
    const maxRows = batchRows(context, config.get(KEYS.egressBatchRows));
    const batches = (): BatchOptions => ({
      maxRows,
      maxBytes: config.get(KEYS.egressBatchSize),
      zstdLevel: level === null ? null : config.get(KEYS.egressCompressionLevel) || level,
      pauseMs: timeouts.sendMs,
    });
    const login = LastingLogin.of(context, readOnly);
    return {
      maxMessageBytes: config.get(KEYS.egressRequestLimit),
      run: (peer) =>
        new Conversation({
          ...{ peer, sessions, login, limits, batches, logger },
          seconds: statements.qwp,
        }).run(),
    };
  };
  const about = 'WebSocket that returns query results in the columnar protocol';
  return [{ path: READ_PATH, about, accept }];
}

/** Returns the zstd level; `null` if the client does not accept zstd, or prefers no compression. */
function requestedLevel(accepted: string): number | null {
  for (const choice of accepted.split(',')) {
    const [name = '', ...parameters] = choice.split(';').map((part) => part.trim().toLowerCase());
    if (name === 'raw' || name === 'identity') {
      return null;
    }
    if (name === 'zstd') {
      const [, digits] = /^level=(-?\d{1,9})$/.exec(parameters[0] ?? '') ?? [];
      const level = digits === undefined ? DEFAULT_LEVEL : Number(digits);
      return Math.min(Math.max(level, 1), MAX_LEVEL);
    }
  }
  return null;
}

/** The client may request smaller batches; an invalid value is ignored. */
function batchRows(context: HttpContext, maximum: number): number {
  const text = context.get('X-QWP-Max-Batch-Rows').trim();
  const requested = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  return requested === 0 ? maximum : Math.min(requested, maximum);
}
