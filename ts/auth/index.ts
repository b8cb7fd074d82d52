/** Who asks. */
export { createBasicAuthenticator } from './basic.js';
export type { Directory, LoginEndpoint } from './directory.js';
export type { Authenticator, Identity, IdentityKind, Login } from './identity.js';
export { LoginSessions, SESSION_COOKIE, SESSION_SECONDS } from './login-sessions.js';
export { FailureLimiter } from './failure-limiter.js';
export {
  fitsVerifier,
  mockVerifier,
  SCRAM_ITERATIONS,
  scramVerifier,
  type ScramVerifier,
} from './scram-verifier.js';
