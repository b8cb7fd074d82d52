/** Stops a listener, without resetting connections that were just opened. */
import type { Server } from 'node:net';

/** Number of event loop iterations; each accepts one connection from the system's queue. */
const MAX_ITERATIONS = 64;

/**
 * Stops listening; resolves when every connection has ended. Connections that are still in the
 * system's queue are accepted first, because the operating system would reset them.
 */
export async function stopListening(server: Server): Promise<void> {
  for (let iteration = 0; iteration < MAX_ITERATIONS; iteration += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
}
