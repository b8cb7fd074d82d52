/** Certificates and keys from PEM files, reloaded at runtime; independent of protocols. */
export { certificateFiles, type TlsEndpoint } from './certificate-files.js';
export { type Credentials, CredentialStore, TlsError } from './credential-store.js';
