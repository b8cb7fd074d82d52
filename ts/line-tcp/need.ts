/** Whether the listener may open: where others ask for logins, it does too. Users have keys. */
import { type Config, KEYS } from '../config/index.js';

/** Why it stays shut; `null`: it may open. */
export function lineTcpRefusal(config: Config): string | null {
  if (hasSenderKeys(config)) {
    return null;
  }
  const hasLogin = config.get(KEYS.httpUser) !== '' && config.get(KEYS.httpPassword) !== '';
  return hasLogin
    ? `${KEYS.httpUser.name} asks for logins, which the line protocol over TCP has with ` +
        `${KEYS.lineTcpKeys.name} or ${KEYS.aclEnabled.name} alone`
    : null;
}

/** Whether senders have to prove who they are. */
export function hasSenderKeys(config: Config): boolean {
  return config.get(KEYS.aclEnabled) || config.get(KEYS.lineTcpKeys) !== '';
}
