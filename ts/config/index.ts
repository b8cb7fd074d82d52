/**
 * The registry of all configuration keys, and its loader. It imports only the option types from the
 * engine.
 */
export { machineOf, plainAddress } from './address.js';
export {
  Config,
  ConfigError,
  engineOptions,
  loadConfig,
  type Reloaded,
  unknownIn,
  type UnknownName,
  unknownSettings,
} from './config.js';
export { configurationDocument } from './document.js';
export { configurationFile } from './template.js';
export { type Key, KEYS } from './registry.js';
export { type Endpoint, isLoopback, ValueError } from './units.js';
