/** Programs that run until the test stops them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { until } from '../until.js';

/** Runs functions when it ends, as a test does. */
export interface Scope {
  readonly teardown: (stop: () => unknown) => unknown;
}

export class Daemon {
  readonly #process: ChildProcess;
  readonly #end: Promise<unknown>;
  #output = '';

  /** Starts a program; the end of the scope stops it. */
  constructor(
    scope: Scope,
    command: string,
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ) {
    const env = { ...process.env, ...environment };
    this.#process = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    this.#end = once(this.#process, 'close');
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    scope.teardown(() => this.stop());
  }

  /** Standard output and standard error so far. */
  output(): string {
    return this.#output;
  }

  /** Waits until the output contains the pattern; throws if the program ends first. */
  async prints(pattern: RegExp): Promise<void> {
    const holds = (): boolean => {
      if (this.#process.exitCode !== null && !pattern.test(this.#output)) {
        throw new Error(`ended without ${String(pattern)}: ${this.#output}`);
      }
      return pattern.test(this.#output);
    };
    await until(holds, String(pattern));
  }

  /** Ends the program as an operator would. */
  async stop(): Promise<void> {
    this.#process.kill('SIGTERM');
    await this.#end;
  }
}
