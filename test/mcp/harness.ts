/** Agents that connect with the SDK's client, over standard input and over HTTP. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';

import { commandFile } from '../golden/server.js';

interface Login {
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  readonly mayWrite?: boolean;
}

type Connect = (url: string, login?: Login) => Promise<Client>;

async function connected(transport: Transport): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  return client;
}

/** The command line, started the way agent clients start it. */
export function stdioTransport(url: string, login: Login = {}): StdioClientTransport {
  const { user, password, token, mayWrite } = login;
  const env: Record<string, string> = { PATH: process.env['PATH'] ?? '' };
  if (password !== undefined) {
    env['TIDEMARK_PASSWORD'] = password;
  }
  if (token !== undefined) {
    env['TIDEMARK_TOKEN'] = token;
  }
  const args = [
    ...[commandFile(), 'mcp', '--url', url],
    ...(user === undefined ? [] : ['--user', user]),
    ...(mayWrite === true ? ['--allow-writes'] : []),
  ];
  return new StdioClientTransport({ command: process.execPath, args, env, stderr: 'pipe' });
}

export async function overStdio(url: string, login?: Login): Promise<Client> {
  return await connected(stdioTransport(url, login));
}

export async function overHttp(url: string, login: Login = {}): Promise<Client> {
  const { user, password, token, mayWrite } = login;
  const headers: Record<string, string> = {};
  if (token !== undefined) {
    headers['Authorization'] = `Bearer ${token}`;
  } else if (user !== undefined) {
    const basic = Buffer.from(`${user}:${password ?? ''}`).toString('base64');
    headers['Authorization'] = `Basic ${basic}`;
  }
  if (mayWrite === true) {
    headers['Tidemark-Writes'] = 'allow';
  }
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers },
  });
  // The class declares some members as optional, whereas its interface declares them without
  // undefined.
  return await connected(transport);
}

export const WAYS: readonly (readonly [name: string, connect: Connect])[] = [
  ['standard input', overStdio],
  ['HTTP', overHttp],
];

type Arguments = Readonly<Record<string, unknown>>;

async function call(client: Client, name: string, given: Arguments = {}): Promise<CallToolResult> {
  return (await client.callTool({ name, arguments: { ...given } })) as CallToolResult;
}

/** Returns a tool's answer; throws the tool's error. */
export async function answer(
  client: Client,
  name: string,
  given: Arguments = {},
): Promise<Record<string, unknown>> {
  const result = await call(client, name, given);
  if (result.isError === true) {
    throw new Error(textOf(result));
  }
  return result.structuredContent ?? {};
}

/** Returns a tool's error message. */
export async function failure(
  client: Client,
  name: string,
  given: Arguments = {},
): Promise<string> {
  const result = await call(client, name, given);
  if (result.isError !== true) {
    throw new Error(`expected a failure, got ${textOf(result)}`);
  }
  return textOf(result);
}

function textOf({ content }: CallToolResult): string {
  return content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n');
}

/** Runs statements as the administrator of a server without users. */
export async function exec(url: string, ...statements: readonly string[]): Promise<void> {
  for (const query of statements) {
    const body = new URLSearchParams({ query });
    const response = await fetch(`${url}/exec`, { method: 'POST', body });
    if (!response.ok) {
      throw new Error(`${query}: ${await response.text()}`);
    }
  }
}
