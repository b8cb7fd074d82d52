/** Parses the `Authorization` header. */

export type Credentials =
  | { readonly scheme: 'basic'; readonly user: string; readonly password: string }
  | { readonly scheme: 'bearer'; readonly token: string };

/**
 * Parses the header value; returns `null` for another scheme or a malformed value. Schemes are
 * case-insensitive. InfluxDB clients write `Token` instead of `Bearer`.
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

/** Parses UTF-8. The first colon ends the name; the password may contain colons. */
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
