// The progress of a cargo build, with an estimate of the remaining time. The time of a crate is
// estimated by the size of its sources, because cargo does not know it in advance.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { filesOf } from './sources.mjs';
import { childEnvironment, root } from './steps.mjs';

const LINE_MS = 15_000;
const MINUTE_MS = 60_000;
/** Fraction of the work that must be done before an estimate is printed. */
const MIN_DONE = 0.05;
const FIRST = 'about 15 minutes on 2 cores';
const LIBRARIES = new Set(['lib', 'rlib', 'cdylib', 'proc-macro']);

/** Prints the progress at intervals; `read` receives cargo's messages. */
export function compileProgress() {
  const sizes = crateSizes();
  const finished = new Set();
  const started = Date.now();
  let [total, done] = [0, 0];
  for (const size of sizes.values()) {
    total += size;
  }
  const show = () => {
    const elapsed = Date.now() - started;
    const left = done > total * MIN_DONE ? (elapsed * (total - done)) / done : null;
    const estimate =
      left === null
        ? `a first build takes ${FIRST}`
        : `about ${Math.ceil(left / MINUTE_MS)} min left`;
    console.log(`   ${finished.size} of ${sizes.size} crates compiled, ${estimate}`);
  };
  const timer = setInterval(show, LINE_MS);
  return {
    read(line) {
      const message = line.startsWith('{') ? JSON.parse(line) : {};
      const id = message.package_id;
      const isLibrary = message.target?.kind.some((kind) => LIBRARIES.has(kind));
      if (message.reason !== 'compiler-artifact' || !isLibrary || finished.has(id)) {
        return;
      }
      finished.add(id);
      const size = sizes.get(id) ?? 0;
      if (message.fresh) {
        total -= size;
      } else {
        done += size;
      }
    },
    end: () => clearInterval(timer),
  };
}

/** Returns the source size in bytes of each crate that the addon depends on, by package ID. */
function crateSizes() {
  const cargo = (...args) =>
    execFileSync(args[0], args.slice(1), {
      cwd: root,
      env: childEnvironment(),
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  const [, host = ''] = /^host: (\S+)$/m.exec(cargo('rustc', '-vV')) ?? [];
  const options = ['--format-version=1', '--locked', `--filter-platform=${host}`];
  const { packages, resolve } = JSON.parse(cargo('cargo', 'metadata', ...options));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const folders = new Map(packages.map((item) => [item.id, dirname(item.manifest_path)]));
  const pending = packages.filter(({ name }) => name === 'tidemark-native').map(({ id }) => id);
  const sizes = new Map();
  for (const id of pending) {
    if (sizes.has(id)) {
      continue;
    }
    const files = filesOf(join(folders.get(id), 'src')).filter((file) => file.endsWith('.rs'));
    sizes.set(
      id,
      files.reduce((sum, file) => sum + statSync(file).size, 0),
    );
    for (const { pkg, dep_kinds: kinds } of nodes.get(id).deps) {
      if (kinds.some(({ kind }) => kind !== 'dev')) {
        pending.push(pkg);
      }
    }
  }
  return sizes;
}
