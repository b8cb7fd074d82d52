/** The table in docs/http.md, generated from the routes by `npm run generate`. */
import type { StaticFile } from '../../ts/http/response/static-files.js';
import type { Route } from '../../ts/http/route.js';
import { createRoutes } from '../../ts/http/routes/index.js';
import { fakeDatabase } from './fake-database.js';
import { fakeServices } from './harness.js';

const TABLE = /^\| Path \| Methods \| Does \|\n(?:\|.*\n)+/m;

/** Returns the document with the routes of a server that has default settings. */
export function httpDocument(document: string): string {
  const page: StaticFile = {
    type: 'text/html',
    body: Buffer.alloc(0),
    etag: '""',
    immutable: false,
    compressed: null,
  };
  const files = new Map([['/', page]]);
  const routes = createRoutes(fakeServices({ files }, fakeDatabase()));
  return document.replace(TABLE, () => routeTable(routes));
}

/** Builds one line for all routes with the same description. */
function routeTable(routes: readonly Route[]): string {
  const lines = new Map<string, { paths: Set<string>; methods: Set<string> }>();
  for (const { about, path, methods } of routes) {
    if (about !== null) {
      const line = lines.get(about) ?? { paths: new Set(), methods: new Set() };
      line.paths.add(`\`${path}\``);
      methods.forEach((method) => line.methods.add(method));
      lines.set(about, line);
    }
  }
  const rows = [...lines].map(
    ([about, { paths, methods }]) =>
      `| ${[...paths].join(', ')} | ${[...methods].join(', ')} | ${about} |\n`,
  );
  return ['| Path | Methods | Does |\n', '|---|---|---|\n', ...rows].join('');
}
