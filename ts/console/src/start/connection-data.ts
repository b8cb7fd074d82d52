/** Collects the connection data for clients of this server that the current user may see. */
import { query, type Settings } from '../api/client.js';
import type { SignIn } from '../signin/state.js';
import type { ConnectionData, WireLogin } from './snippets.js';
import { texts } from '../texts.js';

/** Default password of a new installation. */
const FIRST_PASSWORD = 'quest';
const FIRST_USER = 'admin';
/** User name to send if the password is a token. */
const TOKEN_USER = '_sso';

export async function connectionDataOf(
  { config }: Settings,
  signIn: SignIn,
): Promise<ConnectionData> {
  const http = new URL('.', location.href).href.replace(/[#?].*$/, '');
  const httpUser = signIn.state === 'in' ? signIn.user : undefined;
  const sendsIdToken = config['acl.oidc.groups.encoded.in.token'] === true;
  const sent = sendsIdToken ? texts.start.idToken : texts.start.accessToken;
  const token = signIn.state === 'in' && signIn.byProvider ? sent : undefined;
  const port = config['pg.port'];
  if (typeof port !== 'number') {
    return { http, httpUser, token, endpoint: undefined, wire: undefined };
  }
  const endpoint = {
    host: location.hostname,
    port,
    isEncrypted: config['pg.tls.enabled'] === true,
  };
  const acceptsTokens = config['acl.oidc.pg.token.as.password.enabled'] === true;
  const wire =
    token === undefined
      ? await wireLogin(httpUser)
      : acceptsTokens
        ? { user: TOKEN_USER, password: undefined }
        : undefined;
  return { http, httpUser, token, endpoint, wire };
}

/**
 * Returns the login for the PostgreSQL wire protocol. With access control, the protocol accepts the
 * same users as HTTP; otherwise, it accepts a single user name.
 */
async function wireLogin(user: string | undefined): Promise<WireLogin> {
  const own = { user: user ?? FIRST_USER, password: undefined };
  try {
    const { rows } = await query(
      'SELECT property_path, value, value_source FROM (SHOW PARAMETERS) ' +
        "WHERE property_path IN ('acl.enabled', 'pg.user', 'pg.password')",
    );
    const known = new Map(rows.map(([name, value, source]) => [name, { value, source }]));
    if (known.get('acl.enabled')?.value !== 'false') {
      return own;
    }
    const isFirst = known.get('pg.password')?.source === 'default';
    return {
      user: String(known.get('pg.user')?.value ?? FIRST_USER),
      password: isFirst ? FIRST_PASSWORD : undefined,
    };
  } catch {
    // A user who may not read the server's parameters must be a database user.
    return own;
  }
}
