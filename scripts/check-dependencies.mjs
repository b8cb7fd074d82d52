// Checks the licences and sources of all dependencies without the network: npm packages here, and
// crates with cargo-deny and deny.toml. .github/workflows/audit.yml checks the advisories.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { npmComponents, recordedFolders } from './sbom.mjs';
import { answers, root, run } from './steps.mjs';

/** Licences of packages whose code is in the published packages. */
const SHIPPED = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
];
/** Further licences of packages that are used only to build and test. */
const DEVELOPMENT = [...SHIPPED, 'CC-BY-4.0', 'CC0-1.0', 'MPL-2.0', 'PSF-2.0'];
const DENY = ['--offline', '--locked', 'check', '--hide-inclusion-graph', '-A', 'duplicate'];

const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const problems = [];
const entries = Object.entries(packages).filter(([path]) => path.includes('node_modules/'));
for (const [path, { license, link, integrity, resolved }] of entries) {
  if (link === true) {
    continue;
  }
  if (!isAllowed(license, DEVELOPMENT)) {
    problems.push(`${path}: the licence ${license ?? '(none)'} is not on the list`);
  }
  // The lock file names no address, so npm uses the configured registry.
  if (resolved !== undefined || !/^sha512-/.test(integrity ?? '')) {
    problems.push(`${path}: not from the registry, or without a SHA-512 digest`);
  }
}
const shipped = npmComponents([...recordedFolders('server'), ...recordedFolders('console')]);
for (const { path, license } of shipped.filter((part) => !isAllowed(part.license, SHIPPED))) {
  problems.push(`${path}: the licence ${license} is not on the list for published code`);
}
if (await answers('cargo-deny')) {
  const { code, output } = await run('cargo-deny', [...DENY, 'bans', 'licenses', 'sources'], {
    capture: true,
    quiet: true,
  });
  console.log(output.trim());
  problems.push(...(code === 0 ? [] : ['cargo-deny found problems']));
} else {
  console.log('SKIPPED cargo-deny: it is not installed; scripts/setup-tests.mjs installs it');
}
problems.forEach((problem) => console.log(problem));
console.log(
  `dependencies: ${entries.length} npm packages, ${shipped.length} of them published, ` +
    `${problems.length} problems`,
);
process.exitCode = problems.length === 0 ? 0 : 1;

/** Evaluates an SPDX expression that contains no parentheses. */
function isAllowed(license, list) {
  const options = (license ?? '').replaceAll(/[()]/g, '').split(' OR ');
  return options.some((option) => option.split(' AND ').every((name) => list.includes(name)));
}
