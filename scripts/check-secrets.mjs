// Checks that no committed file contains a secret of a known form: keys, tokens and passwords in
// URLs. A test that needs one creates it when it runs.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { root } from './steps.mjs';

const FORMS = {
  'private key': /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}/,
  'AWS access key': /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  'GitHub token': /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60})/,
  'npm token': /\bnpm_[A-Za-z0-9]{36}\b/,
  'PyPI token': /\bpypi-[A-Za-z0-9_-]{50}/,
  'Slack token': /\bxox[abposr]-[A-Za-z0-9-]{20}/,
  'Google API key': /\bAIza[0-9A-Za-z_-]{35}\b/,
  'Stripe key': /\b[rs]k_live_[0-9A-Za-z]{24}/,
  'JSON Web Token': /\beyJ[\w-]{20,}\.eyJ[\w-]{20,}\.[\w-]{40,}/,
  'registry password': /^\s*(?:\/\/\S+:)?_(?:authToken|password|auth)\s*=\s*(?!\$)\S{8}/m,
};
const MAX_BYTES = 4 * 1024 * 1024;

const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 1 << 26,
});
let problems = 0;
let files = 0;
for (const file of listed.split('\0').filter((name) => name !== '')) {
  const text = contents(join(root, file));
  files += text === '' ? 0 : 1;
  for (const [name, form] of Object.entries(FORMS)) {
    const at = text.search(form);
    if (at >= 0) {
      const line = text.slice(0, at).split('\n').length;
      console.log(`${file}:${line}: ${name}: revoke it, and remove it from the history`);
      problems += 1;
    }
  }
}
console.log(`secrets: ${files} files, ${problems} problems`);
process.exitCode = problems === 0 ? 0 : 1;

function contents(file) {
  try {
    const bytes = readFileSync(file);
    return bytes.length > MAX_BYTES ? '' : bytes.toString('latin1');
  } catch {
    return ''; // Deleted and not committed yet, or a link to a folder.
  }
}
