/**
 * POST /mcp: tools for agents, over the stateless Streamable HTTP transport of the Model Context
 * Protocol. DELETE ends the calls that a client is still waiting for. The implementation is loaded
 * at the first request.
 */
import { KEYS } from '../../config/index.js';
import { principalKey, type Session } from '../../session/index.js';
import type { Setting } from '../../mcp/setting.js';
import { followSession } from '../login-cookie.js';
import type { HttpPaths } from '../paths.js';
import { principalOf } from '../response/statement-answer.js';
import { answer, type HttpContext, type HttpServices, JSON_TYPE, type Route } from '../route.js';

const PASSED_HEADERS = ['accept', 'content-type', 'mcp-session-id', 'mcp-protocol-version'];
/** Header that a client's configuration uses to request write access. */
const WRITES_HEADER = 'Tidemark-Writes';
const PARSE_ERROR = -32_700;

export function mcpRoutes(services: HttpServices, { agents: path, base }: HttpPaths): Route[] {
  const { config } = services;
  if (!config.get(KEYS.mcpEnabled)) {
    return [];
  }
  const shared = {
    path,
    access: 'data',
    errors: 'text',
    about: 'serves tools for agents ([agents](mcp.md))',
  } as const;
  return [
    {
      ...shared,
      methods: ['POST'],
      body: { kind: 'bytes', limitBytes: config.get(KEYS.mcpRequestSize) },
      handle: async (context) => {
        followSession(context, services, `${base}/`);
        await answerMessage(context, services);
      },
    },
    {
      ...shared,
      methods: ['DELETE'],
      handle: async (context) => {
        const { endSession } = await import('../../mcp/index.js');
        endSession(requestOf(context), principalKey(principalOf(context, true)));
        context.status = 204;
      },
    },
  ];
}

async function answerMessage(context: HttpContext, services: HttpServices): Promise<void> {
  let message: unknown;
  try {
    message = JSON.parse(context.state.body.toString('utf8'));
  } catch {
    const error = { code: PARSE_ERROR, message: 'Parse error: the body is not valid JSON' };
    answer(context, 400, JSON_TYPE, JSON.stringify({ jsonrpc: '2.0', error, id: null }));
    return;
  }
  const { exchange } = await import('../../mcp/index.js');
  const disconnected = new AbortController();
  const close = (): void => {
    disconnected.abort();
  };
  context.res.once('close', close);
  try {
    const response = await exchange({
      request: requestOf(context),
      message,
      owner: principalKey(principalOf(context, true)),
      setting: settingOf(context, services),
      disconnected: disconnected.signal,
    });
    await passOn(context, response);
  } finally {
    context.res.off('close', close);
  }
}

function settingOf(context: HttpContext, services: HttpServices): Setting {
  const { config, sessions, statements, documents, version } = services;
  const serverReads = config.get(KEYS.httpReadOnly);
  const isAsked = context.get(WRITES_HEADER).trim().toLowerCase() === 'allow';
  const mayWrite = isAsked && config.get(KEYS.mcpWritesAllowed) && !serverReads;
  const open = (access: 'read' | 'write'): Session =>
    sessions.open(principalOf(context, access === 'read' || !mayWrite), false, statements.http);
  const limits = {
    rows: config.get(KEYS.mcpRows),
    bytes: config.get(KEYS.mcpAnswerSize),
    timeoutMs: Math.min(config.get(KEYS.mcpTimeout), config.get(KEYS.queryTimeoutMax)),
  };
  return { open, mayWrite, limits, documents, version };
}

/** Builds the request for the protocol library; the body was already read. */
function requestOf(context: HttpContext): Request {
  const headers = PASSED_HEADERS.map((name): [string, string] => [name, context.get(name)]);
  return new Request('http://localhost/mcp', {
    method: context.method,
    headers: headers.filter(([, value]) => value !== ''),
  });
}

async function passOn(context: HttpContext, response: Response): Promise<void> {
  context.status = response.status;
  for (const [name, value] of response.headers) {
    context.set(name, value);
  }
  context.body = await response.text();
}
