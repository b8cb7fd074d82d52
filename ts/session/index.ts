/** A statement's execution path, shared by every protocol. */
export { asDatabaseError, ChangedResult } from './error.js';
export { parquetOptions } from './parquet-options.js';
export {
  allowing,
  type CatalogChange,
  type Guard,
  type ImportTarget,
  type Listed,
  type Principal,
  principalKey,
} from './guard.js';
export {
  ChangeFeed,
  type FeedStart,
  type FeedStep,
  parseFeedStart,
  positionText,
} from './change-feed.js';
export { type Notification } from './channels.js';
export { type LiftedQuery, liftLiterals } from '../engine/literals.js';
export { type TextShapeDetector, textShapeContext } from './text-shape.js';
export type { DurationObserver } from './duration-observer.js';
export { WriteAuthorizer, type WriteTarget } from './write-authorizer.js';
export { OwnStatement, type OwnAction } from './own-statement.js';
export { withoutSecrets } from './secrets.js';
export { refuseIfLate, timeBounds, type TimeBounds } from './time-bounds.js';
export type { ParameterTypes } from './binding.js';
export { isOfText, PreparedStatement, type RowOptions } from './prepared-statement.js';
export { Session, SessionHost } from './session.js';
export type { Actor, ServerStatements } from './statement-host.js';
export type { Operations } from './operations.js';
export type { TemporaryTable } from './temporary.js';
export { errorMeaning, httpStatusOf, sqlStateOf } from './status.js';
export { type ParsedStatement } from './statement-cache.js';
// Statements that a session runs itself; a protocol with persistent connections executes them.
export type {
  CopyStream,
  CopyStreamOptions,
  CursorStep,
  DeclareCursor,
  FetchCursor,
  ExecuteStatement,
  PrepareStatement,
  SessionStatement,
  TransactionModes,
} from '../sql/index.js';
// Re-exported for building SQL text, because protocols do not import the printer.
export { quoteName } from '../sql/printer/print-expression.js';
// Re-exported for reading SQL text and settings, because protocols do not import the parser.
export { ISOLATION_LEVELS } from '../sql/statements/session-statement.js';
export { firstQuestionMark, splitStatements, type StatementText } from '../sql/lexer/split.js';
// The engine's types and its error are re-exported, because protocols do not import the engine.
export { DatabaseError } from '../engine/error.js';
export { type BufferedMessages, WebSocketReader } from '../engine/websocket.js';
export { isSentAsText, ParameterBatch, parameterHeader } from '../engine/parameters.js';
export type {
  Access,
  Chunk,
  ColumnOptions,
  CopyAppender,
  CopyForm,
  CopyMistake,
  Database,
  ExecuteReply,
  HandoffResult,
  HttpHandoffTerms,
  HandoffQuery,
  LineOptions,
  LinePrecision,
  ListedRows,
  Handoff,
  Owner,
  ParameterValues,
  ParquetOptions,
  PgHandoffTerms,
  ResultColumn,
  ResultStream,
  RowFormat,
  Visibility,
  Statement,
  StatementContext,
  StatementDescription,
  Summary,
  TableChange,
  TableMetadata,
  Transaction,
} from '../engine/types.js';
