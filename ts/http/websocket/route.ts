/** WebSocket routes. */
import { answerText, type HttpContext, type Route } from '../route.js';
import type { WebSocketConnection } from './connection.js';

/**
 * The definition of a WebSocket route. Login, page origin and permission checks are the same as for
 * plain routes.
 */
export interface WebSocketRoute extends Pick<Route, 'path' | 'permission' | 'about'> {
  /**
   * Decides whether to accept a request that passed the checks. It may set headers of the 101
   * response. Returns `null` if it sent another response.
   */
  readonly accept: (context: HttpContext) => Acceptance | null | Promise<Acceptance | null>;
}

/** An accepted connection. */
export interface Acceptance {
  /**
   * Maximum size in bytes of a message with all its fragments; a longer message closes the
   * connection with 1009.
   */
  readonly maxMessageBytes: number;
  /** Whether messages are buffered for an appender instead of being delivered one by one. */
  readonly buffersMessages?: boolean;
  /** Runs as long as the connection is open; an exception closes it with 1011. */
  readonly run: (connection: WebSocketConnection) => Promise<void>;
}

/** Returns the route that answers plain (non-upgrade) requests on the same path. */
export function withoutUpgrade({ path, permission, about }: WebSocketRoute): Route {
  return {
    path,
    methods: ['GET'],
    access: 'data',
    errors: 'text',
    ...(permission === undefined ? {} : { permission }),
    about,
    handle: (context) => {
      context.set('Upgrade', 'websocket');
      answerText(context, 426, 'Upgrade Required: this path accepts only WebSocket connections');
    },
  };
}
