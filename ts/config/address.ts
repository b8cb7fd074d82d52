/** Whose an address is, for what is shared out between addresses. */
import { isIPv6 } from 'node:net';

import { isLoopback } from './units.js';

/** Groups of an IPv6 address that a provider hands to one customer: 64 bits. */
const NETWORK_GROUPS = 4;
const ALL_GROUPS = 8;

/** A socket of both families tells IPv4 addresses in the longer form. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
}

/** One machine: an IPv4 address, or the network of an IPv6 address, all of which it may use. */
export function machineOf(address: string): string {
  const [bare = ''] = plainAddress(address).split('%', 1);
  if (!isIPv6(bare) || isLoopback(bare)) {
    return bare;
  }
  const [head = '', tail] = bare.split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Math.max(ALL_GROUPS - before.length - after.length, 0);
  const groups = [...before, ...Array<string>(zeros).fill('0'), ...after];
  return `${groups.slice(0, NETWORK_GROUPS).join(':')}::/64`;
}
