/** Who asks. */
export {
  type Authenticator,
  createBasicAuthenticator,
  type Identity,
  type Login,
} from './basic.js';
export { FailureLimiter } from './failure-limiter.js';
