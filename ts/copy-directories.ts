/** Configures COPY for a server: the directories that statements may access. */
import { realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

import { type Config, type Key, KEYS } from './config/index.js';
import { type Copy, createCopy } from './copy/index.js';
import type { Database } from './engine/index.js';
import { TextFiles } from './ingest/index.js';
import type { Logger } from './observability/index.js';
import type { Guard, TextShapeDetector } from './session/index.js';
import { EXIT_CONFIG, StartError } from './start-error.js';

/** Absolute paths. */
export interface CopyDirectories {
  readonly importRoot: string;
  readonly exportRoot: string;
}

/**
 * Returns the configured directories. Throws `StartError` for a directory that statements must not
 * access.
 */
export function copyDirectories(root: string, config: Config): CopyDirectories {
  return {
    importRoot: directory(root, config, KEYS.copyRoot),
    exportRoot: directory(root, config, KEYS.copyExportRoot),
  };
}

/** Creates the COPY service from the configuration. */
export function openCopy(
  directories: CopyDirectories,
  database: Database,
  config: Config,
  {
    logger,
    guard,
    detectTextShape,
  }: { logger: Logger; guard: Guard | undefined; detectTextShape: TextShapeDetector },
): Copy {
  return createCopy({
    guard,
    detectTextShape,
    ...directories,
    database,
    logRetentionDays: config.get(KEYS.copyLogRetention),
    queueCapacity: config.get(KEYS.copyQueue),
    bufferBytes: config.get(KEYS.copyBuffer),
    analysedLines: config.get(KEYS.textAnalysisLines),
    reservedDiskBytes: config.get(KEYS.diskWatermark),
    logger: logger.child('copy'),
  });
}

/** Creates the schema detector for text files that queries read. */
export function openTexts(root: string, config: Config): TextShapeDetector {
  const texts = new TextFiles({
    // The engine clears this directory when it opens the root.
    directory: resolve(root, 'tmp', 'texts'),
    linesMax: config.get(KEYS.textAnalysisLines),
    reservedDiskBytes: config.get(KEYS.diskWatermark),
  });
  return (request, signal) => texts.detectShape(request, signal);
}

/**
 * Resolves a relative path against the root. Refuses directories that belong to the database or
 * contain its secrets.
 */
function directory(root: string, config: Config, key: Key<string>): string {
  const chosen = resolve(root, config.get(key));
  for (const reserved of ['db', 'conf']) {
    if (overlaps(real(chosen), real(resolve(root, reserved)))) {
      throw new StartError(
        `${key.name}=${config.get(key)} overlaps the directory '${reserved}' of the root: choose ` +
          'another directory',
        EXIT_CONFIG,
      );
    }
  }
  return chosen;
}

/** Resolves symbolic links in the existing part of a path. */
function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(real(parent), basename(path));
  }
}

/** Returns whether either directory contains the other. */
function overlaps(first: string, second: string): boolean {
  // On Windows, the path between two drives is absolute.
  const isInside = (path: string): boolean => !isAbsolute(path) && path.split(sep)[0] !== '..';
  return isInside(relative(first, second)) || isInside(relative(second, first));
}
