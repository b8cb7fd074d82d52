/** Whether the listener may open: where others ask for logins, it does too. */
import { type Config, KEYS } from '../config/index.js';

/** Why it stays shut; `null`: it may open. */
export function lineTcpRefusal(config: Config): string | null {
  if (config.get(KEYS.lineTcpKeys) !== '') {
    return null;
  }
  const key = [KEYS.aclEnabled, KEYS.oidcEnabled].find((one) => config.get(one))?.name;
  const hasLogin = config.get(KEYS.httpUser) !== '' && config.get(KEYS.httpPassword) !== '';
  const asked = key ?? (hasLogin ? KEYS.httpUser.name : null);
  return asked === null
    ? null
    : `${asked} asks for logins, which the line protocol over TCP has with ` +
        `${KEYS.lineTcpKeys.name} alone`;
}
