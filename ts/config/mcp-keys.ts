/** Keys for agent tools (Model Context Protocol). */
import { bool, duration, key, OWN, RELOAD, size } from './key.js';
import { parsePositive } from './units.js';

export const MCP_KEYS = {
  mcpEnabled: bool('mcp.enabled', true, 'tools for agents (Model Context Protocol) at /mcp', OWN),
  mcpWritesAllowed: bool(
    'mcp.writes.allowed',
    true,
    'agents may write where the configuration of their client asks for it and the rights of ' +
      'their user suffice; false: agents only read',
    { ...OWN, ...RELOAD },
  ),
  mcpRows: key(
    'mcp.max.rows',
    'integer',
    '10000',
    parsePositive,
    'most rows of one answer to an agent; it gets 100 where it asks for no number',
    { ...OWN, ...RELOAD },
  ),
  mcpAnswerSize: size(
    'mcp.max.answer.size',
    '512K',
    'most bytes of the rows, or of the document, in one answer to an agent',
    { ...OWN, ...RELOAD },
  ),
  mcpTimeout: duration(
    'mcp.query.timeout',
    '30s',
    'time of a statement of an agent; it may ask for less, never for more',
    { ...OWN, ...RELOAD },
  ),
  mcpRequestSize: size('mcp.max.request.size', '1M', 'one request of an agent', OWN),
};
