/** Who asks. */
export { type Authenticator, createBasicAuthenticator, type Identity } from './basic.js';
