/** Who asks. */
export { createBasicAuthenticator } from './basic.js';
export type { Authenticator, Identity, IdentityKind, Login } from './identity.js';
export { LoginSessions, SESSION_COOKIE, SESSION_SECONDS } from './login-sessions.js';
export { FailureLimiter } from './failure-limiter.js';
