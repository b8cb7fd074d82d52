/** Configuration keys for agent tools (Model Context Protocol). */
import { bool, duration, key, OWN, RELOAD, size } from './key.js';
import { parsePositive } from './units.js';

export const MCP_KEYS = {
  mcpEnabled: bool('mcp.enabled', true, 'tools for agents (Model Context Protocol) at /mcp', OWN),
  mcpWritesAllowed: bool(
    'mcp.writes.allowed',
    true,
    'agents can write if their client is configured for it and their user has the ' +
      'permissions; if false, agents can only read',
    { ...OWN, ...RELOAD },
  ),
  mcpRows: key(
    'mcp.max.rows',
    'integer',
    '10000',
    parsePositive,
    'maximum rows of one response to an agent; a request without a limit receives 100',
    { ...OWN, ...RELOAD },
  ),
  mcpAnswerSize: size(
    'mcp.max.answer.size',
    '512K',
    'maximum bytes of the rows, or of the document, in one response to an agent',
    { ...OWN, ...RELOAD },
  ),
  mcpTimeout: duration(
    'mcp.query.timeout',
    '30s',
    'timeout of statements of agents; a request can set a shorter timeout, but not a longer one',
    { ...OWN, ...RELOAD },
  ),
  mcpRequestSize: size('mcp.max.request.size', '1M', 'maximum size of a request of an agent', OWN),
};
