// Writes docs/configuration.md from the key registry; run it after `npx tsc -p .`.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { configurationDocument } from '../build/ts/config/index.js';

writeFileSync(join(import.meta.dirname, '..', 'docs', 'configuration.md'), configurationDocument());
