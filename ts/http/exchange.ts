/**
 * A request and its response on hot paths, with only the Koa context members that routes use.
 * Headers are collected, and written together with the body.
 */
import { type IncomingMessage, type ServerResponse } from 'node:http';

import type { HttpContext, RequestState } from './route.js';

const NO_CONTENT = 204;

export class Exchange implements HttpContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  readonly headers: IncomingMessage['headers'];
  /** Set by the first pipeline step. */
  declare state: RequestState;
  status = 404;
  body: unknown = null;
  #isOurs = true;
  /** Alternating header names and values. A name always has the same spelling. */
  readonly #head: (string | string[])[] = [];

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.req = request;
    this.res = response;
    this.method = request.method ?? '';
    this.headers = request.headers;
  }

  get respond(): boolean {
    return this.#isOurs;
  }

  /**
   * A handler that sets `respond` to false writes to `res` itself; `res` receives the headers set
   * so far.
   */
  set respond(isOurs: boolean) {
    if (this.#isOurs && !isOurs && !this.res.headersSent) {
      for (let at = 0; at < this.#head.length; at += 2) {
        this.res.setHeader(String(this.#head[at]), this.#head[at + 1] ?? '');
      }
    }
    this.#isOurs = isOurs;
  }

  get(name: string): string {
    const value = this.headers[name.toLowerCase()];
    return typeof value === 'string' ? value : '';
  }

  set(name: string, value: string | string[]): void {
    const at = this.#indexOf(name);
    if (at < 0) {
      this.#head.push(name, value);
    } else {
      this.#head[at + 1] = value;
    }
  }

  append(name: string, value: string): void {
    const at = this.#indexOf(name);
    const before = at < 0 ? [] : [this.#head[at + 1] ?? []].flat();
    this.set(name, [...before, value]);
  }

  remove(name: string): void {
    const at = this.#indexOf(name);
    if (at >= 0) {
      this.#head.splice(at, 2);
    }
  }

  vary(name: string): void {
    const at = this.#indexOf('Vary');
    this.set('Vary', at < 0 ? name : `${String(this.#head[at + 1])}, ${name}`);
  }

  /** Sends the response, unless a handler does so itself. */
  finish(): void {
    const { res, body } = this;
    if (!this.#isOurs || res.headersSent) {
      return;
    }
    if (this.status === NO_CONTENT) {
      res.writeHead(this.status, this.#head).end();
      return;
    }
    const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : '';
    this.set('Content-Length', String(Buffer.byteLength(bytes)));
    res.writeHead(this.status, this.#head).end(this.method === 'HEAD' ? '' : bytes);
  }

  #indexOf(name: string): number {
    for (let at = 0; at < this.#head.length; at += 2) {
      if (this.#head[at] === name) {
        return at;
      }
    }
    return -1;
  }
}
