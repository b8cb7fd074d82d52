/** What the command line can say without the engine: versions, and why a start failed. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** `EX_CONFIG` of sysexits: the configuration must change before a start can succeed. */
export const EXIT_CONFIG = 78;

/** Why the server does not start; the message is one line for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The version of the package. */
export function packageVersion(): string {
  const path = fileURLToPath(new URL('../../package.json', import.meta.url));
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string };
  return manifest.version;
}

/** One line: `EACCES: permission denied, mkdir '…'` → `permission denied`. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (message.includes('native/index.js')) {
    return 'the native addon is missing, run npm run build';
  }
  const system = /^E[A-Z]+: ([^,]+)/.exec(message)?.[1];
  return (system ?? message).replaceAll(/\s*\n\s*/g, ' ');
}
