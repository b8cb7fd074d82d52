/** Programs that a harness may need. */
import { spawn } from 'node:child_process';

/** Whether a command is installed and runs. */
export function answers(command: string, args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: 'ignore' });
    child.on('error', () => resolve(false));
    child.on('exit', (code) => resolve(code === 0));
  });
}
