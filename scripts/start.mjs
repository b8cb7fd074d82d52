// npm start: installs packages, builds missing outputs, and serves a demonstration data set.
// --from-source compiles the engine even if a binary is published. Further arguments are passed to
// the server: npm start -- --root DIR --set key=value
import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { buildAll, FROM_SOURCE } from './build.mjs';
import { childEnvironment, root } from './steps.mjs';

const words = process.argv.slice(2);
await buildAll({ fromSource: words.includes(FROM_SOURCE) });
const options = words.filter((word) => word !== FROM_SOURCE);
const cli = join(root, 'build', 'server', 'cli.js');
const server = spawn(process.execPath, [cli, 'serve', '--demo', ...options], {
  stdio: 'inherit',
  env: childEnvironment(),
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => server.kill(signal));
}
server.on('close', (code) => {
  process.exitCode = code ?? 1;
});
