/**
 * Buffers whose memory the addon frees as soon as it has read them. Otherwise the garbage collector
 * would have to run for every 64 MiB that a server receives.
 */

/** Returns a buffer's memory; `null` if other buffers share it. */
export function exclusiveMemory(bytes: Buffer): ArrayBuffer | null {
  const { buffer } = bytes;
  return buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length ? buffer : null;
}
