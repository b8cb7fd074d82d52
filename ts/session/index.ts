/** One statement's path, shared by every protocol. */
export { asDatabaseError } from './error.js';
export {
  type Authorise,
  type ParameterTypes,
  PreparedStatement,
  type Principal,
  Session,
  SessionHost,
  type SessionHostOptions,
} from './session.js';
export { errorMeaning, type ErrorMeaning, httpStatusOf, sqlStateOf } from './status.js';
export { type Parse, StatementCache } from './statement-cache.js';
