// npm start: installs packages, builds missing outputs, and serves a demonstration data set.
// Further arguments are passed to the server: npm start -- --root DIR --set key=value
import { spawn } from 'node:child_process';
import { join } from 'node:path';

import { buildAll } from './build.mjs';
import { childEnvironment, root } from './steps.mjs';

await buildAll();
const cli = join(root, 'build', 'server', 'cli.js');
const server = spawn(process.execPath, [cli, 'serve', '--demo', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: childEnvironment(),
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => server.kill(signal));
}
server.on('close', (code) => {
  process.exitCode = code ?? 1;
});
