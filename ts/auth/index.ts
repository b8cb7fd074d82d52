/** Identities, credentials and logins. */
export { createAuthenticator } from './authenticator.js';
export type { Directory, LoginEndpoint, LoginObserver, PublicKey } from './directory.js';
export { identityKey } from './identity.js';
export type { Identity, KnownLogin, Login } from './identity.js';
export type { Authenticator } from './login-rules.js';
export { SESSION_COOKIE, SESSION_SECONDS } from './login-sessions.js';
export { readCredentials } from './credentials.js';
export { FailureLimiter } from './failure-limiter.js';
export { type Caller, CallerDisconnected, LoginsBusy } from './hash-pool.js';
export { fitsVerifier, NameSalts, scramVerifier, type ScramVerifier } from './scram-verifier.js';
export { IdentityProvider, oidcAdvice, readOidcSettings } from './oidc/index.js';
