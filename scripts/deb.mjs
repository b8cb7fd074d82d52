// Creates the Debian package from a standalone archive (scripts/archive.mjs).
//
//     node scripts/deb.mjs OUT_DIR ARCHIVE
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';

import { root } from './steps.mjs';

const ARCHITECTURES = { 'linux-x64-gnu': 'amd64', 'linux-arm64-gnu': 'arm64' };
const NAME = /^tidemark-(\d.*)-(linux-\w+-\w+)\.tar\.gz$/;
const MAINTAINER = 'Tidemark contributors <maintainers@tidemark.invalid>';
const SCRIPTS = ['postinst', 'prerm', 'postrm'];
const EXECUTABLE = 0o755;

const [out, archive] = parseArgs({ allowPositionals: true }).positionals;
const [, version, platform] = NAME.exec(basename(archive ?? '')) ?? [];
const architecture = ARCHITECTURES[platform];
if (architecture === undefined) {
  fail('usage: node scripts/deb.mjs OUT_DIR tidemark-VERSION-linux-{x64,arm64}-gnu.tar.gz');
}
// Debian sorts `~` before the end of a version, so 1.0.0~rc.1 is older than 1.0.0.
const debianVersion = `${version.replace('-', '~')}-1`;
const files = join(root, 'scripts', 'dist', 'deb');
const staging = mkdtempSync(join(tmpdir(), 'tidemark-deb-'));
process.on('exit', () => {
  rmSync(staging, { recursive: true, force: true });
});

const program = join(staging, 'usr', 'lib', 'tidemark');
mkdirSync(program, { recursive: true });
execFileSync('tar', ['-xzf', archive, '-C', program, '--strip-components=1']);
link('../lib/tidemark/tidemark', 'usr/bin/tidemark');
link('../../../lib/tidemark/lib/node_modules/tidemark/docs', 'usr/share/doc/tidemark/docs');
install('copyright', 'usr/share/doc/tidemark/copyright');
install('lintian-overrides', 'usr/share/lintian/overrides/tidemark');
install('tidemark.service', 'usr/lib/systemd/system/tidemark.service');
install('tidemark.sysctl', 'usr/lib/sysctl.d/60-tidemark.conf');
install('server.conf', 'etc/tidemark/server.conf');
write('usr/share/doc/tidemark/changelog.Debian.gz', gzipSync(changelog(), { level: 9 }));
write('DEBIAN/conffiles', '/etc/tidemark/server.conf\n');
write('DEBIAN/control', control());
for (const script of SCRIPTS) {
  install(script, join('DEBIAN', script));
  chmodSync(join(staging, 'DEBIAN', script), EXECUTABLE);
}

const target = resolve(out, `tidemark_${debianVersion}_${architecture}.deb`);
mkdirSync(dirname(target), { recursive: true });
const options = ['--root-owner-group', '-Zxz', '-z0', '--build'];
execFileSync('dpkg-deb', [...options, staging, target], { stdio: ['ignore', 'ignore', 'inherit'] });
console.log(target);

function control() {
  const size = execFileSync('du', ['-sk', '--apparent-size', staging], { encoding: 'utf8' });
  return `Package: tidemark
Version: ${debianVersion}
Architecture: ${architecture}
Maintainer: ${MAINTAINER}
Installed-Size: ${parseInt(size, 10)}
Depends: libc6 (>= ${newestGlibc()}), libstdc++6, libgcc-s1, adduser, procps
Section: database
Priority: optional
Description: time-series SQL database
 Tidemark stores metrics, market data and events. It speaks SQL over HTTP and
 over the PostgreSQL wire protocol, and accepts the InfluxDB line protocol.
 .
 This package contains the server, its web console and the Node.js runtime, and
 runs the server as a service under its own user.
`;
}

/** Returns the newest glibc version that the binaries refer to. */
function newestGlibc() {
  const modules = join(program, 'lib', 'node_modules', '@tidemark', `native-${platform}`);
  const binaries = [join(program, 'bin', 'node'), join(modules, `tidemark.${platform}.node`)];
  const minors = binaries.flatMap((file) =>
    [...readFileSync(file, 'latin1').matchAll(/\0GLIBC_2\.(\d+)(?=\0)/g)].map(
      ([, minor]) => +minor,
    ),
  );
  return `2.${Math.max(...minors)}`;
}

function changelog() {
  const date = execFileSync('date', ['-R', '-u', '-r', archive], { encoding: 'utf8' }).trim();
  return `tidemark (${debianVersion}) stable; urgency=medium

  * Release ${version}.

 -- ${MAINTAINER}  ${date}
`;
}

function install(name, path) {
  write(path, readFileSync(join(files, name)));
}

function write(path, content) {
  mkdirSync(dirname(join(staging, path)), { recursive: true });
  writeFileSync(join(staging, path), content, { mode: 0o644 });
}

function link(to, path) {
  mkdirSync(dirname(join(staging, path)), { recursive: true });
  symlinkSync(to, join(staging, path));
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
