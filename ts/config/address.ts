/** Groups network addresses by their owner, so that per-address limits apply to each owner. */
import { isIPv6 } from 'node:net';

import { isLoopback } from './units.js';

/** Number of 16-bit groups of an IPv6 address that identify a customer's network (64 bits). */
const NETWORK_GROUPS = 4;
const ALL_GROUPS = 8;

/** Removes the IPv6 prefix that dual-stack sockets add to IPv4 addresses. */
export function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
}

/**
 * Returns the address that identifies a machine: the IPv4 address, or the /64 network of the IPv6
 * address, because a single machine may use the entire network.
 */
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
