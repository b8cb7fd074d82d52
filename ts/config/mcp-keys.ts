/** Configuration keys for agent tools (Model Context Protocol). */
import { bool, duration, key, OWN, RELOAD, size } from './key.js';
import { parsePositive } from './units.js';

export const MCP_KEYS = {
  mcpEnabled: bool(
    'mcp.enabled',
    true,
    'serve tools for agents (Model Context Protocol) at /mcp',
    OWN,
  ),
  mcpWritesAllowed: bool(
    'mcp.writes.allowed',
    true,
    'allow agents to write if their client is configured for it and their user has the ' +
      'permissions; if false, agents can only read',
    { ...OWN, ...RELOAD },
  ),
  mcpRows: key(
    'mcp.max.rows',
    'integer',
    '10000',
    parsePositive,
    'maximum number of rows per response to an agent; a request without a limit receives 100',
    { ...OWN, ...RELOAD },
  ),
  mcpAnswerSize: size(
    'mcp.max.answer.size',
    '512K',
    'maximum size of the rows or the document in one response to an agent',
    { ...OWN, ...RELOAD },
  ),
  mcpTimeout: duration(
    'mcp.query.timeout',
    '30s',
    'timeout for statements sent by agents; a request can set a shorter timeout, but not a ' +
      'longer one',
    { ...OWN, ...RELOAD },
  ),
  mcpRequestSize: size(
    'mcp.max.request.size',
    '1M',
    'maximum size of a request from an agent',
    OWN,
  ),
};
