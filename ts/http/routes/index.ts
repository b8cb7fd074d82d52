/** All routes, in the order of docs/http.md. */
import { httpPaths } from '../paths.js';
import type { HttpServices, Route } from '../route.js';
import { changesRoute } from './changes.js';
import { chkRoute } from './chk.js';
import { consoleRoutes } from './console.js';
import { execRoute } from './exec.js';
import { expRoute } from './exp.js';
import { impRoute } from './imp.js';
import { importFileRoute } from './import-file.js';
import { importPreviewRoute } from './import-preview.js';
import { documentRoutes } from './documents.js';
import { lineProtocolRoutes } from './line-protocol.js';
import { liveRoute } from './live.js';
import { mcpRoutes } from './mcp.js';
import { notebookRoutes } from './notebooks.js';
import { qwpIngressRoutes } from './qwp-ingress.js';
import { readRoutes } from './qwp-read.js';
import { healthRoutes, pingRoute, warningsRoute } from './service.js';
import { settingsRoutes } from './settings.js';
import { validateRoute } from './validate.js';
import { workspaceRoutes } from './workspace.js';
import { type WebSocketRoute, withoutUpgrade } from '../websocket/route.js';

/** Factories of all WebSocket routes. */
const WEB_SOCKETS: readonly ((services: HttpServices) => WebSocketRoute[])[] = [
  qwpIngressRoutes,
  readRoutes,
];

export function createWebSockets(services: HttpServices): WebSocketRoute[] {
  return WEB_SOCKETS.flatMap((create) => create(services));
}

export function createRoutes(
  services: HttpServices,
  webSockets: readonly WebSocketRoute[] = createWebSockets(services),
): Route[] {
  const paths = httpPaths(services.config);
  return [
    execRoute(services, paths),
    expRoute(services, paths),
    changesRoute(services, paths),
    liveRoute(services, paths),
    impRoute(services, paths),
    importPreviewRoute(services, paths),
    importFileRoute(services, paths),
    validateRoute(services, paths),
    chkRoute(services, paths),
    ...mcpRoutes(services, paths),
    ...notebookRoutes(services, paths),
    ...workspaceRoutes(services, paths),
    ...documentRoutes(services, paths),
    ...settingsRoutes(services, paths.settings),
    warningsRoute(paths.warnings),
    pingRoute(services, paths.ping),
    ...healthRoutes(services, paths.base),
    ...consoleRoutes(services, paths.base),
    ...lineProtocolRoutes(services, paths.lineProtocol),
    ...webSockets.map(withoutUpgrade),
  ];
}
