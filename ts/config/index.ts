/** The registry of every key, and its loader. It imports only the types of the engine's options. */
export { machineOf, plainAddress } from './address.js';
export { Config, ConfigError, engineOptions, loadConfig, type Reloaded } from './config.js';
export { configurationDocument } from './document.js';
export { type Key, KEYS } from './registry.js';
export { type Endpoint, isLoopback, ValueError } from './units.js';
