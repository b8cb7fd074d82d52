/**
 * The registry of all configuration keys, and its loader. From the engine, it imports only the
 * types of the options.
 */
export { machineOf, plainAddress } from './address.js';
export { Config, ConfigError, engineOptions, loadConfig, type Reloaded } from './config.js';
export { configurationDocument } from './document.js';
export { type Key, KEYS } from './registry.js';
export { type Endpoint, isLoopback, ValueError } from './units.js';
