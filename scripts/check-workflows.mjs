// Checks .github/workflows with actionlint. It does not install actionlint; if actionlint is
// missing, it prints a warning.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { answers, root, run } from './steps.mjs';

const directory = join(root, '.github', 'workflows');
const workflows = readdirSync(directory).filter((name) => /\.ya?ml$/.test(name));

// Actions run with the project's tokens, so each is pinned to a commit. The tag is only a comment.
const PINNED = /uses:\s+(?:\.\/|docker:\/\/|[\w./-]+@[\da-f]{40}\s+# v\d)/;
let problems = 0;
for (const name of workflows) {
  readFileSync(join(directory, name), 'utf8')
    .split('\n')
    .forEach((line, index) => {
      if (/\buses:/.test(line) && !PINNED.test(line)) {
        console.log(`${name}:${index + 1}: pin the action by its full commit, its tag behind it`);
        problems += 1;
      }
    });
}

if (await answers('actionlint', ['-version'])) {
  const { code } = await run('actionlint', [], { cwd: root });
  problems += code === 0 ? 0 : 1;
} else {
  console.log('SKIPPED actionlint: it is not installed; scripts/setup-tests.mjs installs it');
}
console.log(`workflows: ${workflows.length} files, ${problems} problems`);
process.exitCode = problems === 0 ? 0 : 1;
