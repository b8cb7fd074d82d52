/**
 * Loads the native addon. The package `@tidemark/native` selects the binary for this platform; in a
 * checkout, that is the binary from `npm run build`.
 */
import { createRequire } from 'node:module';

import type * as Addon from '#native';
import { addonProblem, loadProblem } from './addon-file.js';

export type {
  NativeAppender,
  NativeChunk,
  NativeDatabase,
  NativeHandoffResult,
  NativeLifted,
  NativePrepared,
  NativeReply,
  NativeResultStream,
  NativeStatement,
  NativeTransaction,
  NativeWebSocket,
} from '#native';

const require = createRequire(import.meta.url);

export const native = load();

/** The error's message is one line that says what to do. */
function load(): typeof Addon {
  const loader = require.resolve('#native');
  const problem = addonProblem(loader);
  if (problem !== null) {
    throw new Error(problem);
  }
  try {
    return require('#native') as typeof Addon;
  } catch (error) {
    throw new Error(loadProblem(loader, error), { cause: error });
  }
}
