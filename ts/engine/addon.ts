/**
 * Loads the native addon. The package `@tidemark/native` picks the binary of this platform; in a
 * checkout it is the one that `npm run build` made.
 */
import { createRequire } from 'node:module';

import type * as Addon from '#native';

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

export const native = require('#native') as typeof Addon;
