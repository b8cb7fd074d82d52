/** What is at the other end of a WebSocket's path. */
import { answerText, type HttpContext, type Route } from '../route.js';
import type { WebSocketConnection } from './connection.js';

/** All that such a route is; logins, pages of other sites and rights are judged as for others. */
export interface WebSocketRoute extends Pick<Route, 'path' | 'permission' | 'about'> {
  /**
   * What becomes of a request that may come in. It may set headers of the 101; `null` where it has
   * answered otherwise.
   */
  readonly accept: (context: HttpContext) => Acceptance | null | Promise<Acceptance | null>;
}

/** A connection that is taken. */
export interface Acceptance {
  /** Longer messages, all fragments counted, are not read: the connection is closed with 1009. */
  readonly mostMessageBytes: number;
  /** Whether they are kept for an appender, and never become messages here. */
  readonly keepsMessages?: boolean;
  /** Runs as long as the connection; what it throws closes it with 1011. */
  readonly run: (connection: WebSocketConnection) => Promise<void>;
}

/** Its path for requests that do not ask for a WebSocket. */
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
      answerText(context, 426, 'Upgrade Required: this path is a WebSocket');
    },
  };
}
