/** The end of a listener, kindly to those who have just connected. */
import type { Server } from 'node:net';

/** Turns of the event loop, in each of which one connection is taken from the system's queue. */
const TURNS = 64;

/**
 * Stops listening; resolves when every connection has ended. Who has connected and was not taken
 * yet is taken first: the operating system resets what is left in its queue.
 */
export async function stopListening(server: Server): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
}
