/** Registers tools. An error in a tool is returned as its result, never as a protocol error. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

import { failureText } from './failure.js';

/** A structured result. Simple clients receive the same content as text. */
export type Answer = Readonly<Record<string, unknown>>;

interface Tool<Input extends z.ZodRawShape> {
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  readonly output: z.ZodRawShape;
  /** Whether the tool writes; absent if it only reads. */
  readonly writes?: boolean;
}

export function addTool<Input extends z.ZodRawShape>(
  server: McpServer,
  name: string,
  { title, description, input, output, writes = false }: Tool<Input>,
  answer: (input: z.infer<z.ZodObject<Input>>, signal: AbortSignal) => Promise<Answer> | Answer,
): void {
  const annotations = {
    title,
    readOnlyHint: !writes,
    destructiveHint: writes,
    idempotentHint: !writes,
    openWorldHint: false,
  };
  const inputSchema: z.ZodObject = z.strictObject(input);
  const config = { title, description, inputSchema, outputSchema: z.object(output), annotations };
  server.registerTool(name, config, async (given, { signal }): Promise<CallToolResult> => {
    try {
      return answered(await answer(given as z.infer<z.ZodObject<Input>>, signal));
    } catch (error) {
      return failed(error, given);
    }
  });
}

function answered(answer: Answer): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(answer) }],
    structuredContent: answer,
  };
}

function failed(error: unknown, given: unknown): CallToolResult {
  const { sql } = given as { readonly sql?: unknown };
  const text = failureText(error, typeof sql === 'string' ? sql : '');
  return { content: [{ type: 'text', text }], isError: true };
}
