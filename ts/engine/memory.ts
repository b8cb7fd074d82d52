/**
 * Buffers that the addon frees as soon as it has read them. If they waited for the garbage
 * collector, it would run for every 64 MiB that a server receives.
 */

/** The memory of a buffer; `null` if other buffers share it. */
export function wholeMemory(bytes: Buffer): ArrayBuffer | null {
  const { buffer } = bytes;
  return buffer instanceof ArrayBuffer && buffer.byteLength === bytes.length ? buffer : null;
}
