/** The commands of docs/guides/deploy.md, each with the output that the page shows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../../..', import.meta.url));

interface Command {
  readonly code: string;
  readonly output: string | null;
}

const BLOCK = /^```sh (\w+)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?/gms;

export function commandsOf(section: string): Command[] {
  const page = readFileSync(join(repository, 'docs', 'guides', 'deploy.md'), 'utf8');
  return [...page.matchAll(BLOCK)]
    .filter(([, name]) => name === section)
    .map(([, , code = '', output]) => ({ code, output: output ?? null }));
}

/** A pattern for an output in which `…` replaces characters of a line. */
export function patternOf(output: string): RegExp {
  const parts = output.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(parts.join('[^\\n]*'));
}
