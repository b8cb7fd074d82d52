/**
 * Decides whether the listener may open. If other endpoints require a login, this listener must
 * also require one. With access control, users have keys.
 */
import { type Config, KEYS } from '../config/index.js';

/** Returns why the listener stays closed; `null` if it may open. */
export function lineTcpRefusal(config: Config): string | null {
  if (hasSenderKeys(config)) {
    return null;
  }
  const hasLogin = config.get(KEYS.httpUser) !== '' && config.get(KEYS.httpPassword) !== '';
  return hasLogin
    ? `${KEYS.httpUser.name} requires logins, which the line protocol over TCP supports only ` +
        `with ${KEYS.lineTcpKeys.name} or ${KEYS.aclEnabled.name}`
    : null;
}

/** Whether senders must authenticate. */
export function hasSenderKeys(config: Config): boolean {
  return config.get(KEYS.aclEnabled) || config.get(KEYS.lineTcpKeys) !== '';
}
