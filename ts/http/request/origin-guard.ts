/**
 * Keeps web pages of other sites away from a server that answers without a login: the Host
 * header must name this server (DNS rebinding), and a request a browser sends for another site's
 * page is refused, GET too, because GET /exec may write.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

export interface OriginRules {
  /** Lower-case host names a request may ask for; `null` takes any (a login protects). */
  readonly hosts: ReadonlySet<string> | null;
  /** Exact origins whose pages may call. */
  readonly corsOrigins: ReadonlySet<string>;
}

export const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** Whether the request asks for this server; missing and repeated Host headers do not. */
export function hostAllowed(request: IncomingMessage, rules: OriginRules): boolean {
  if (countHeader(request, 'host') > 1) {
    return false;
  }
  if (rules.hosts === null) {
    return true;
  }
  const authority = parseAuthority(request.headers.host ?? '');
  return authority !== null && rules.hosts.has(authority.host);
}

/** Whether a browser sent this for a page of ours (or no browser sent it). */
export function pageAllowed(headers: IncomingHttpHeaders, rules: OriginRules): boolean {
  const { origin, referer } = headers;
  if (origin !== undefined) {
    return rules.corsOrigins.has(origin) || sameHost(origin, headers.host);
  }
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    return false;
  }
  return referer === undefined || sameHost(referer, headers.host);
}

/** How often a header was sent; Node keeps the first of some. */
export function countHeader(request: IncomingMessage, name: string): number {
  let count = 0;
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const sent = request.rawHeaders[index];
    count += sent?.length === name.length && sent.toLowerCase() === name ? 1 : 0;
  }
  return count;
}

interface Authority {
  readonly host: string;
  readonly port: string | null;
}

/** `Name:9000`, `name.`, `[::1]:9000`; anything else, user information too, is `null`. */
function parseAuthority(text: string): Authority | null {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9_.-]*))(?::(\d{1,5}))?$/i.exec(text);
  if (match?.[1] === undefined || Number(match[2] ?? 0) > 65_535) {
    return null;
  }
  const host = match[1].toLowerCase();
  return { host: host.endsWith('.') ? host.slice(0, -1) : host, port: match[2] ?? null };
}

function sameHost(address: string, host: string | undefined): boolean {
  const found = /^(https?):\/\/([^/?#]*)/i.exec(address);
  const theirs = parseAuthority(found?.[2] ?? '');
  const ours = parseAuthority(host ?? '');
  if (theirs === null || ours === null) {
    return false;
  }
  const defaultPort = found?.[1]?.toLowerCase() === 'https' ? '443' : '80';
  const samePort = (theirs.port ?? defaultPort) === (ours.port ?? defaultPort);
  return theirs.host === ours.host && samePort;
}
