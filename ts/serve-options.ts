/** Checks the options of a server that a program starts. */
import { ConfigError, unknownIn, type UnknownName, unknownSettings } from './config/index.js';
import type { ServeOptions } from './main.js';
import { EXIT_CONFIG, StartError } from './start-error.js';

const OPTIONS: Readonly<Record<keyof ServeOptions, true>> = {
  root: true,
  configFile: true,
  set: true,
  environment: true,
  demo: true,
  writeLog: true,
  progress: true,
};

/**
 * Refuses unknown options and unknown keys in `set`. A server that ignored them would listen on the
 * default ports.
 */
export function checkServeOptions(options: Partial<ServeOptions>): void {
  refuse('option', unknownIn(Object.keys(options), new Set(Object.keys(OPTIONS))));
  try {
    refuse('configuration key', unknownSettings(options.set ?? []));
  } catch (error) {
    throw error instanceof ConfigError
      ? new StartError(error.message, EXIT_CONFIG, { cause: error })
      : error;
  }
}

function refuse(what: string, [first]: readonly UnknownName[]): void {
  if (first !== undefined) {
    const { name, hint } = first;
    const message = `unknown ${what} '${name}'`;
    throw new StartError(hint === '' ? message : `${message}; ${hint}`, EXIT_CONFIG);
  }
}
