/** Generates `docs/configuration.md` from the registry, so it is always up to date. */
import { environmentNames } from './config.js';
import { ALL_KEYS, type Key } from './registry.js';

const INTRODUCTION = [
  '# Configuration',
  'Generated from `ts/config/registry.ts` by `npm run configuration-docs`; edit it there.',
  'Values come from these sources, each overriding the previous one: the default, ' +
    '`ROOT/conf/server.conf` (or `--config FILE`), the environment, `--set key=value`. The file ' +
    'has the format of Java properties: `key=value` lines, `#` comments, backslash escapes. Keys ' +
    'that QuestDB also has use its names. Other QuestDB keys have no effect, and each is ' +
    'reported in the log (as an error with `config.validation.strict=true`).',
  'A duration is `500ms`, `60s`, `5m`, `1h`; a plain number is in milliseconds unless the key ' +
    'says otherwise. A size is `512`, `64K`, `2M` or `1G`. An address is `host:port`; a port ' +
    'without a host binds to loopback, and port 0 selects a free port.',
  'A secret can be read from a separate file: `http.password.file=PATH`, or ' +
    '`QDB_HTTP_PASSWORD_FILE=PATH`. The file takes precedence.',
  'Keys marked ↻ take effect without a restart: on `SIGHUP` or `SELECT reload_config()`, the ' +
    'server reads the configuration file and the secret files again. New limits apply to new ' +
    'connections. If a file cannot be used, nothing changes and the error is logged.',
  '| Key | Environment | Type | Default | Meaning |\n|---|---|---|---|---|\n',
].join('\n\n');

export function configurationDocument(): string {
  return `${INTRODUCTION}${ALL_KEYS.map(row).join('\n')}\n`;
}

function row(key: Key<unknown>): string {
  const names = [key.name, ...key.aliases].map((name) => `\`${name}\``).join(', ');
  const environment = environmentNames(key)[0] ?? '';
  const fallback = key.defaultText === '' ? '' : `\`${key.defaultText}\``;
  const doc = key.doc.replaceAll('|', '\\|');
  const mark = key.reloadable ? ' ↻' : '';
  return `| ${names}${mark} | \`${environment}\` | ${key.kind} | ${fallback} | ${doc} |`;
}
