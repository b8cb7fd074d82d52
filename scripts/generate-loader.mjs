// Writes native/index.js and native/index.d.ts, the addon's loader and declarations. napi's macros
// record the exports while the crate is checked.
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { generateTypeDef, writeJsBinding } from '@napi-rs/cli';

import manifest from '../native/package.json' with { type: 'json' };
import { must, root } from './steps.mjs';

const native = join(root, 'native');
const folder = mkdtempSync(join(tmpdir(), 'tidemark-exports-'));
try {
  // napi's macros run only when the crate is recompiled.
  const now = new Date();
  utimesSync(join(native, 'src', 'lib.rs'), now, now);
  await must('cargo', ['check', '--locked', '--release', '-p', 'tidemark-native'], {
    env: { NAPI_TYPE_DEF_TMP_FOLDER: folder },
  });
  const { dts, exports } = await generateTypeDef({ typeDefDir: folder, cwd: native });
  writeFileSync(join(native, 'index.d.ts'), dts);
  await writeJsBinding({
    platform: true,
    idents: exports,
    jsBinding: 'index.js',
    binaryName: manifest.napi.binaryName,
    packageName: manifest.napi.packageName,
    version: manifest.version,
    outputDir: native,
  });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
