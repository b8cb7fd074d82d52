/** The registry of every key, and its loader. Imports types of the engine's options alone. */
export { machineOf, plainAddress } from './address.js';
export {
  Config,
  ConfigError,
  type ConfigSources,
  engineOptions,
  environmentNames,
  loadConfig,
  type Parameter,
  type Reloaded,
  type ValueSource,
} from './config.js';
export { configurationDocument } from './document.js';
export { ALL_KEYS, type Key, type KeyKind, KEYS } from './registry.js';
export {
  type Endpoint,
  isLoopback,
  parseDurationMs,
  parseEndpoint,
  parseSize,
  ValueError,
} from './units.js';
