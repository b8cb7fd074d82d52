/**
 * Loads the native addon. The package `@tidemark/native` selects the binary for this platform; in a
 * checkout, that is the binary from `npm run build`.
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
