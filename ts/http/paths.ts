/** Paths of the HTTP interface. */
import { type Config, type Key, KEYS } from '../config/index.js';

export interface HttpPaths {
  /** Prefix of all paths: empty, or `/name` without a trailing slash. */
  readonly base: string;
  readonly execute: string;
  readonly export: string;
  readonly import: string;
  readonly tableStatus: string;
  readonly settings: string;
  readonly warnings: string;
  readonly validate: string;
  readonly importPreview: string;
  readonly importFile: string;
  readonly agents: string;
  readonly notebooks: string;
  readonly notebook: string;
  readonly workspace: string;
  readonly ping: string;
  readonly lineProtocol: readonly string[];
}

/**
 * Paths that are not configured are below the console's path, except those of the line protocol.
 */
export function httpPaths(config: Config): HttpPaths {
  const console = config.get(KEYS.httpContextConsole);
  const base = console === '/' ? '' : console;
  const below = (key: Key<string>): string =>
    config.source(key) === 'default' ? base + config.get(key) : config.get(key);
  return {
    base,
    execute: below(KEYS.httpContextExecute),
    export: below(KEYS.httpContextExport),
    import: below(KEYS.httpContextImport),
    tableStatus: below(KEYS.httpContextTableStatus),
    settings: below(KEYS.httpContextSettings),
    warnings: below(KEYS.httpContextWarnings),
    validate: `${base}/api/v1/sql/validate`,
    importPreview: `${base}/api/v1/import/preview`,
    importFile: `${base}/api/v1/import/file`,
    agents: `${base}/mcp`,
    notebooks: `${base}/api/v1/notebooks`,
    notebook: `${base}/api/v1/notebook`,
    workspace: `${base}/api/v1/workspace`,
    ping: config.get(KEYS.httpContextPing),
    lineProtocol: config.get(KEYS.httpContextLineProtocol),
  };
}
