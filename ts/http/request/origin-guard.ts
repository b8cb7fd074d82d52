/**
 * Protects a server without a login from other sites' web pages. The Host header must name this
 * server, to prevent DNS rebinding. Requests that a browser sends for another site's page are
 * refused. This includes GET requests, because GET /exec may write.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

export interface OriginRules {
  /** Allowed host names in lower case; `null` allows any, because a login is required. */
  readonly hosts: ReadonlySet<string> | null;
  /** Exact origins whose pages may send requests. */
  readonly corsOrigins: ReadonlySet<string>;
}

export const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** Whether the Host header names this server; false if the header is missing or repeated. */
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

/** Whether the request comes from a page of this server, or not from a browser. */
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

/** Counts how often a header occurs; for some headers, Node keeps only the first. */
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

/**
 * Parses `Name:9000`, `name.` or `[::1]:9000`; `null` for anything else, including user
 * information.
 */
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
