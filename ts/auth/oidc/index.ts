/** Sign-on through an identity provider (OpenID Connect). */
export type { ProviderMetadata } from './metadata.js';
export { IdentityProvider } from './provider.js';
export { oidcAdvice, type OidcSettings, readOidcSettings } from './settings.js';
export type { Verdict } from './verdict.js';
