/** Creates the logins that the configuration specifies. */
import {
  type Authenticator,
  createAuthenticator,
  type Directory,
  IdentityProvider,
  oidcAdvice,
  readOidcSettings,
} from './auth/index.js';
import { type Config, KEYS } from './config/index.js';
import type { Logger } from './observability/index.js';

/** Creates the logins. With a `directory`, users and grants apply, and `http.user` is ignored. */
export function createLogins(config: Config, logger: Logger, directory?: Directory): Authenticator {
  const user = config.get(KEYS.httpUser);
  const password = config.get(KEYS.httpPassword);
  const settings = readOidcSettings(config);
  const provider =
    settings === null ? undefined : new IdentityProvider(settings, logger.child('oidc'));
  return createAuthenticator({
    basicRealm: config.get(KEYS.oidcBasicRealm),
    ...(user === '' || password === '' ? {} : { owner: { user, password } }),
    ...(directory === undefined ? {} : { directory }),
    ...(provider === undefined ? {} : { provider }),
  });
}

/** Logs at startup how to make the sign-on configuration more secure. */
export function adviseOnLogins(config: Config, logger: Logger): void {
  const settings = readOidcSettings(config);
  for (const notice of settings === null ? [] : oidcAdvice(settings)) {
    logger.warn('sign_on', { notice });
  }
}
