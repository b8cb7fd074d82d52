/**
 * Checks the messages of all commits since this rule was introduced. A message has a subject of at
 * most 72 characters that begins with an imperative verb, an empty line, and a body that says why.
 * A checkout without history passes.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const SINCE = '2026-11-30T07:40:00Z';
const MAX_SUBJECT_LENGTH = 72;
/** Common mistakes: a past tense, third person or noun instead of the imperative. */
const NOT_IMPERATIVE = /^(\w+(ed|ing)|Adds|Fixes|Makes|Uses|Removes|Changes|Shows|Writes|Renames)$/;
const IMPERATIVE_IN_ED = /^(Embed|Feed|Need|Seed|Speed|Shed|Bring|String|Ring)$/;

/**
 * @param {string} message
 * @returns {string[]} the violations in a message
 */
export function faultsOf(message) {
  const [subject = '', empty = '', ...body] = message.trimEnd().split('\n');
  const [verb = ''] = subject.split(' ', 1);
  const faults = [];
  if (subject.length > MAX_SUBJECT_LENGTH) {
    faults.push(`the subject has ${subject.length} characters, at most ${MAX_SUBJECT_LENGTH}`);
  }
  if (!/^[A-Z]\w*$/.test(verb) || (NOT_IMPERATIVE.test(verb) && !IMPERATIVE_IN_ED.test(verb))) {
    faults.push(`the subject must begin with a verb in the imperative, not "${verb}"`);
  }
  if (/[.:;]$/.test(subject)) {
    faults.push('the subject must not end with punctuation');
  }
  if (empty !== '' || body.join('').trim() === '') {
    faults.push('a body that says why must follow the subject after an empty line');
  }
  return faults;
}

const log = spawnSync('git', ['log', '--no-merges', `--since=${SINCE}`, '--format=%h%x00%B%x01'], {
  cwd: ROOT,
  encoding: 'utf8',
});
const commits = log.status === 0 ? log.stdout.split('\x01').map((one) => one.trim()) : [];
for (const commit of commits.filter((one) => one !== '')) {
  const [hash, message = ''] = commit.split('\0');
  for (const fault of faultsOf(message)) {
    console.error(`${hash}: ${fault}`);
    process.exitCode = 1;
  }
}
