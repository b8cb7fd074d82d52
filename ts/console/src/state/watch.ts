/** Follows the server while the page is visible: schema, running queries, memory and jobs. */
import type { Activity } from './activity.js';
import type { Jobs } from './jobs.js';
import { followServer } from './live.js';
import { announce } from '../page/notices.js';
import type { Schema } from './schema.js';
import type { Server } from './server.js';
import type { Vitals } from './vitals.js';
import { texts } from '../texts.js';

interface Watched {
  readonly server: Server;
  readonly schema: Schema;
  readonly activity: Activity;
  readonly vitals: Vitals;
  readonly jobs: Jobs;
}

/** Watches the server until the returned function is called. */
export function watchServer({ server, schema, activity, vitals, jobs }: Watched): () => void {
  /** Polls all data that the stream would push. */
  const poll = async (): Promise<void> => {
    if ((await server.greet()) !== 'connected') {
      await schema.refresh();
    } else if (schema.tables().state === 'ready') {
      await schema.poll();
    }
    // A user who may not read the list of tables does not poll the running queries either.
    if (schema.tables().state === 'ready') {
      await activity.refresh();
      await vitals.refresh(schema.rowCount);
      await jobs.watch();
    }
  };
  return followServer({
    poll,
    greet: async (signal) => {
      await server.greet(signal);
      await schema.refresh();
    },
    take: (name, answer, now) => {
      if (name === 'tables') {
        if (answer) {
          schema.take(answer, now);
        }
        vitals.note(schema.rowCount);
      } else if (answer) {
        ({ queries: activity, memory: vitals, jobs })[name].take(answer);
      }
    },
    lost: () => {
      if (server.connection() === 'connected') {
        announce(texts.common.notResponding);
      }
      server.connection.set('lost');
    },
    isLost: () => server.connection() === 'lost',
  });
}
