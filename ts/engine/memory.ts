/**
 * Memory that the addon frees once it has read it. What waits for the collector instead makes that
 * run for every 64 MiB of what a server receives.
 */

/** The memory of the bytes; null where it holds others as well. */
export function wholeMemory(bytes: Buffer): ArrayBuffer | null {
  const { buffer } = bytes;
  return buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length ? buffer : null;
}
