/** Host limits that are too low for a growing database. */
import { readFileSync } from 'node:fs';

interface HostWarning {
  readonly tag: string;
  readonly warning: string;
}

interface HostLimit {
  readonly tag: string;
  /** Name of the limit in the warning. */
  readonly name: string;
  readonly path: string;
  readonly pattern: RegExp;
}

/** The value that QuestDB's documentation recommends. */
const RECOMMENDED = 1_048_576;

const OPEN_FILES: HostLimit = {
  tag: 'TOO MANY OPEN FILES',
  name: 'open files',
  path: '/proc/self/limits',
  pattern: /^Max open files\s+(\d+)/m,
};

const LIMITS: readonly HostLimit[] = [
  OPEN_FILES,
  {
    tag: 'TOO MANY OPEN FILES',
    name: 'fs.file-max',
    path: '/proc/sys/fs/file-max',
    pattern: /^(\d+)/,
  },
  {
    tag: 'OUT OF MMAP AREAS',
    name: 'vm.max_map_count',
    path: '/proc/sys/vm/max_map_count',
    pattern: /^(\d+)/,
  },
];

/** Returns the limits that an operator should raise; empty if the system does not report them. */
export function hostWarnings(read: (path: string) => string = readText): HostWarning[] {
  return LIMITS.flatMap((limit) => {
    const current = valueOf(limit, read);
    const figures = `[current=${current}, recommended=${RECOMMENDED}]`;
    const { tag, name } = limit;
    return current !== null && current < RECOMMENDED
      ? [{ tag, warning: `${name} limit is too low ${figures}` }]
      : [];
  });
}

/** Returns the process's limit of open files; `null` if there is none. */
export function maxOpenFiles(): number | null {
  return valueOf(OPEN_FILES, readText);
}

function valueOf({ path, pattern }: HostLimit, read: (path: string) => string): number | null {
  const match = pattern.exec(read(path))?.[1];
  return match === undefined ? null : Number(match);
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
