import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import test from 'ava';

/** Checks the size of the files that a browser loads against the budget in docs/console.md. */
const BUILT = 'build/console';
const FIRST_PAINT = 90_000;
const EDITOR_READY = 260_000;
const EVERYTHING = 600_000;

const page = readFileSync(`${BUILT}/index.html`, 'utf8');
const scripts = readdirSync(`${BUILT}/assets`).filter((name) => name.endsWith('.js'));

function gzipped(names: readonly string[]): number {
  return names
    .map((name) => gzipSync(readFileSync(`${BUILT}/assets/${name}`), { level: 9 }).length)
    .reduce((sum, size) => sum + size, 0);
}

test('the script files stay within their size budget', (t) => {
  const first = scripts.filter((name) => page.includes(name));
  const editor = scripts.filter((name) => /^editor-(?!events-)/.test(name));
  t.is(editor.length, 1);
  const sizes = [gzipped(first), gzipped([...first, ...editor]), gzipped(scripts)] as const;
  t.log(`first paint ${sizes[0]}, editor ready ${sizes[1]}, everything ${sizes[2]} bytes`);
  t.true(sizes[0] <= FIRST_PAINT);
  t.true(sizes[1] <= EDITOR_READY);
  t.true(sizes[2] <= EVERYTHING);
});

test('the page contains no inline code and refers to no other host', (t) => {
  t.notRegex(page, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
  t.notRegex(page, /(?:src|href)="(?!\.\/)/, 'all URLs are relative');
  for (const name of readdirSync(`${BUILT}/assets`)) {
    const hosts = readFileSync(`${BUILT}/assets/${name}`, 'utf8').match(/https?:\/\/[\w.]+/g) ?? [];
    // XML namespaces, and web pages that libraries mention in their messages, are exempt.
    const cited = hosts.filter((host) => !/www\.w3\.org|codemirror\.net|github\.com/.test(host));
    t.deepEqual(cited, [], name);
  }
});
