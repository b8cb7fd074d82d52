/** Schemas of tables and views as resources. */
import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';

import { failureText, ToolError } from './failure.js';
import type { Setting } from './setting.js';
import { describeTable, namesOf } from './table-tools.js';

const SCHEME = 'tidemark://tables/';
const JSON_TYPE = 'application/json';
const MAX_LISTED = 1_000;
/** Maximum number of completion values that the protocol allows. */
const MAX_COMPLETIONS = 100;

export function addTableResources(server: McpServer, setting: Setting): void {
  const template = new ResourceTemplate(`${SCHEME}{table}`, {
    list: async ({ signal }) => {
      const names = await namesOf(setting, '', MAX_LISTED, signal);
      return { resources: names.map((name) => ({ uri: uriOf(name), name, mimeType: JSON_TYPE })) };
    },
    complete: { table: (start) => completions(setting, start) },
  });
  const about = {
    title: 'Tables',
    description: 'Output of describe_table for a table or view.',
    mimeType: JSON_TYPE,
  };
  server.registerResource('tables', template, about, async (uri, { table }, { signal }) => {
    try {
      const name = decodeURIComponent(String(table));
      const text = JSON.stringify(await describeTable(setting, name, signal), null, 2);
      return { contents: [{ uri: uri.href, mimeType: JSON_TYPE, text }] };
    } catch (error) {
      throw new ToolError(failureText(error));
    }
  });
}

/** Returns the table names with this prefix. */
export async function completions(setting: Setting, start: string): Promise<string[]> {
  const never = new AbortController();
  return await namesOf(setting, start, MAX_COMPLETIONS, never.signal);
}

function uriOf(table: string): string {
  return SCHEME + encodeURIComponent(table);
}
