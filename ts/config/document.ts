/** Generates `docs/configuration.md` from the registry, so that it is always correct. */
import { environmentNames } from './config.js';
import { ALL_KEYS, type Key } from './registry.js';

const INTRODUCTION = [
  '# Configuration',
  'Made from `ts/config/registry.ts` by `npm run configuration-docs`; edit it there.',
  'Values come from, each winning over the one before: the default, `ROOT/conf/server.conf` ' +
    '(or `--config FILE`), the environment, `--set key=value`. The file has the form of Java ' +
    'properties: `key=value` lines, `#` comments, backslash escapes. Names are QuestDB’s where ' +
    'it has one; its other keys are accepted, have no effect, and give one line in the log ' +
    '(`config.validation.strict=true` makes them an error).',
  'A duration is `500ms`, `60s`, `5m`, `1h`; a bare number counts milliseconds unless the key ' +
    'says otherwise. A size is `512`, `64K`, `2M`, `1G`. An address is `host:port`; a port ' +
    'alone binds loopback, port 0 picks a free one.',
  'A secret may lie in a file of its own: `http.password.file=PATH`, or ' +
    '`QDB_HTTP_PASSWORD_FILE=PATH`. The file form wins.',
  'Keys marked ↻ take effect without a restart: after `SIGHUP`, or `SELECT reload_config()`, the ' +
    'server reads the file and the files of secrets again. Limits count for connections to ' +
    'come. A file that cannot be used changes nothing and is one error in the log.',
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
