// Functions that the scripts share: paths, and steps with visible progress.
import { spawn } from 'node:child_process';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'tidemark');

/**
 * Folder for compiled Rust code. It is outside the clone, so a second clone also builds
 * incrementally.
 */
export const targetDirectory =
  process.env.CARGO_TARGET_DIR ?? process.env.TIDEMARK_TARGET_DIR ?? join(cache, 'target');

/** Folder for test-only tools: Python drivers, actionlint, the QuestDB jar. */
export const toolsDirectory = process.env.TIDEMARK_TOOLS_DIR ?? join(cache, 'tools');

/**
 * Returns the environment for every child process, with a shared target folder and the tools on the
 * path.
 */
export function childEnvironment(extra = {}) {
  const path = [join(toolsDirectory, 'bin'), join(toolsDirectory, 'venv', 'bin')];
  return {
    ...process.env,
    CARGO_TARGET_DIR: targetDirectory,
    PATH: [...path, process.env.PATH].join(delimiter),
    ...extra,
  };
}

/**
 * Runs a command and passes its output through. Resolves to the exit code and, with `capture`, also
 * to the output.
 */
export function run(command, args, options = {}) {
  const { capture = false, env = {}, cwd = root, quiet = false } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: childEnvironment(env),
      stdio: ['ignore', ...Array(2).fill(capture || quiet ? 'pipe' : 'inherit')],
    });
    let output = '';
    child.stdout?.on('data', (chunk) => {
      output += chunk;
      if (!quiet) {
        process.stdout.write(chunk);
      }
    });
    child.stderr?.on('data', (chunk) => {
      output += chunk;
      if (!quiet) {
        process.stderr.write(chunk);
      }
    });
    child.on('error', reject);
    child.on('close', (code) => {
      resolve({ code: code ?? 1, output });
    });
  });
}

/** Returns whether a command exists and runs successfully. */
export async function answers(command, args = ['--version']) {
  try {
    return (await run(command, args, { quiet: true })).code === 0;
  } catch {
    return false;
  }
}

/**
 * Cargo arguments for all Rust tests. Testing a single package would compile its dependencies
 * again, with different features.
 */
export const TEST_ALL = [
  'test',
  '--locked',
  '--release',
  '--workspace',
  '--exclude',
  'tidemark-native',
];

/** Returns the command that runs a script in this folder with these arguments. */
export function script(name, ...args) {
  return [process.execPath, [join(root, 'scripts', `${name}.mjs`), ...args]];
}

/** Announces a step, runs it and prints its duration. */
export async function step(title, work) {
  const started = Date.now();
  console.log(`\n== ${title}`);
  const result = await work();
  console.log(`== ${title}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
  return result;
}

/** Like `run`, but ends the script with a single clear line if the command fails. */
export async function must(command, args, options) {
  let code;
  try {
    ({ code } = await run(command, args, options));
  } catch (error) {
    console.error(`cannot run ${command}: ${error.message}`);
    process.exit(1);
  }
  if (code !== 0) {
    console.error(`failed (exit code ${code}): ${command} ${args.join(' ')}`);
    process.exit(1);
  }
}
