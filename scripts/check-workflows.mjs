// Checks .github with actionlint and zizmor. It installs neither; if one is missing, it prints a
// warning.
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

/** Programs, each with the arguments that print its version and the arguments of the check. */
const CHECKERS = {
  actionlint: [['-version'], []],
  zizmor: [['--version'], ['--offline', '--no-progress', '--quiet', join(root, '.github')]],
};
for (const [name, [version, args]] of Object.entries(CHECKERS)) {
  if (await answers(name, version)) {
    const { code } = await run(name, args, { cwd: root });
    problems += code === 0 ? 0 : 1;
  } else {
    console.log(`SKIPPED ${name}: it is not installed; scripts/setup-tests.mjs installs it`);
  }
}

// A job that may publish never runs for a pull request.
const MAY_PUBLISH = /id-token: write|secrets\.|contents: write/;
const NEVER_FOR_PULL_REQUESTS = /^ {4}if: github\.event_name == 'push' && /m;
for (const name of workflows) {
  const [head, ...jobs] = readFileSync(join(directory, name), 'utf8').split(/^ {2}(?=[\w-]+:$)/m);
  const own = jobs.filter((job) => MAY_PUBLISH.test(job) && !NEVER_FOR_PULL_REQUESTS.test(job));
  for (const job of [...(MAY_PUBLISH.test(head) ? ['all jobs'] : []), ...own]) {
    console.log(`${name}: ${job.split(':')[0]} may publish, and can run for a pull request`);
    problems += 1;
  }
}
console.log(`workflows: ${workflows.length} files, ${problems} problems`);
process.exitCode = problems === 0 ? 0 : 1;
