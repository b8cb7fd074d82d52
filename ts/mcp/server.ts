/** The MCP server: registers tools, resources and prompts. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js';

import { addDocumentTools } from './document-tools.js';
import { addPrompts } from './prompts.js';
import { addQueryTools, DATA_IS_DATA } from './query-tools.js';
import type { Setting } from './setting.js';
import { addTableResources } from './table-resources.js';
import { addTableTools } from './table-tools.js';

/** Maximum total number of array elements and object members in a call's arguments. */
const MAX_ELEMENTS = 10_000;

const INSTRUCTIONS =
  'Tidemark is a time-series database with QuestDB’s SQL dialect. Begin with list_tables and ' +
  'describe_table; read time-series.md with read_doc before the first query with SAMPLE BY, ' +
  `LATEST ON, ASOF JOIN or intervals; use search_docs if a statement is rejected. ${DATA_IS_DATA}`;

/** Rejects responses from clients, since the server sends no requests. */
const NO_ANSWERS: jsonSchemaValidator = {
  getValidator: () => () => ({
    valid: false,
    data: undefined,
    errorMessage: 'this server sends no requests to clients',
  }),
};

export function createServer(setting: Setting): McpServer {
  const about = { name: 'tidemark', title: 'Tidemark', version: setting.version };
  const server = new McpServer(about, {
    instructions: INSTRUCTIONS,
    jsonSchemaValidator: NO_ANSWERS,
    maxToolInputElements: MAX_ELEMENTS,
  });
  addTableTools(server, setting);
  addQueryTools(server, setting);
  addDocumentTools(server, setting);
  addTableResources(server, setting);
  addPrompts(server, setting);
  return server;
}
