#!/usr/bin/env node
/**
 * The entry point of the command line. It checks the version of Node.js before it loads modules
 * that old versions cannot parse. This file must therefore use only syntax of Node.js 12.
 */
import { MIN_NODE, nodeIsSupported } from './node-version.js';

if (nodeIsSupported(process.versions.node)) {
  void import('./command-line.js');
} else {
  process.stderr.write(
    `tidemark: Node.js ${process.versions.node} is not supported, ${MIN_NODE} or later is required\n`,
  );
  process.exitCode = 1;
}
