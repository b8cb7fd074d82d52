/** Who asks. */
export {
  type Authenticator,
  createBasicAuthenticator,
  type Identity,
  type Login,
} from './basic.js';
export { LoginSessions, SESSION_COOKIE, SESSION_SECONDS } from './login-sessions.js';
export { FailureLimiter } from './failure-limiter.js';
