/** Who asks. */
export {
  type AuthenticatorParts,
  createAuthenticator,
  createBasicAuthenticator,
  type Owner,
} from './authenticator.js';
export type { Directory, LoginEndpoint, LoginWitness } from './directory.js';
export { identityKey } from './identity.js';
export type {
  Authenticator,
  Identity,
  IdentityKind,
  KnownLogin,
  Login,
  SignOn,
} from './identity.js';
export { LoginSessions, SESSION_COOKIE, SESSION_SECONDS } from './login-sessions.js';
export { readCredentials } from './credentials.js';
export { FailureLimiter } from './failure-limiter.js';
export { type Caller, CallerGone, type LoginConnection, LoginsBusy } from './hash-pool.js';
export {
  fitsVerifier,
  NameSalts,
  SCRAM_ITERATIONS,
  scramVerifier,
  type ScramVerifier,
} from './scram-verifier.js';
export {
  IdentityProvider,
  oidcAdvice,
  type OidcSettings,
  type ProviderMetadata,
  readOidcSettings,
} from './oidc/index.js';
