/** What an `Authorization` header says. */

export type Credentials =
  | { readonly scheme: 'basic'; readonly user: string; readonly password: string }
  | { readonly scheme: 'bearer'; readonly token: string };

/**
 * `null`: another scheme, or a value that is none. Schemes are read in any case; clients of
 * InfluxDB write `Token` where others write `Bearer`.
 */
export function readCredentials(header: string): Credentials | null {
  const text = header.trim();
  const scheme = /^(basic|bearer|token) +/i.exec(text);
  const value = text.slice(scheme?.[0].length);
  switch (scheme?.[1]?.toLowerCase()) {
    case 'basic':
      return readBasic(value);
    case 'bearer':
    case 'token':
      return value === '' || value.includes(' ') ? null : { scheme: 'bearer', token: value };
    default:
      return null;
  }
}

/** UTF-8; the first colon ends the name, a password may have more. */
function readBasic(value: string): Credentials | null {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) {
    return null;
  }
  const text = Buffer.from(value, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0
    ? null
    : { scheme: 'basic', user: text.slice(0, colon), password: text.slice(colon + 1) };
}
