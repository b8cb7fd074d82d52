/** Simulated disk damage. */
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Flips a bit in the middle of the first segment of table `t` and returns that file. */
export async function damageSegment(root: string): Promise<string> {
  const tables = join(root, 'db', 't');
  const [table = ''] = await readdir(tables);
  const files = await readdir(join(tables, table));
  const segment = files.filter((name) => name.endsWith('.seg')).sort()[0] ?? '';
  const file = await open(join(tables, table, segment), 'r+');
  try {
    const { size } = await file.stat();
    const byte = Buffer.alloc(1);
    const at = Math.floor(size / 3);
    await file.read(byte, 0, 1, at);
    byte.writeUInt8(byte.readUInt8() ^ 8);
    await file.write(byte, 0, 1, at);
  } finally {
    await file.close();
  }
  return segment;
}
