/** Declarations of the API that the tests use, because the package has none. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface Account {
    readonly accountId: string;
    claims(use: string, scope: string): Record<string, unknown> | Promise<Record<string, unknown>>;
  }

  export interface GrantContext {
    readonly oidc: {
      readonly client: { readonly clientId: string };
      readonly params: Readonly<Record<string, string>>;
    };
    body: unknown;
  }

  interface Stored {
    save(): Promise<string>;
  }

  export class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    registerGrantType(
      name: string,
      handler: (context: GrantContext) => Promise<void>,
      parameters: readonly string[],
    ): void;
    readonly Grant: new (options: Record<string, unknown>) => Stored & {
      addOIDCScope(scope: string): void;
    };
    readonly AccessToken: new (options: Record<string, unknown>) => Stored & {
      readonly expiration: number;
    };
    readonly IdToken: new (
      claims: Record<string, unknown>,
      context: Record<string, unknown>,
    ) => { issue(options: { use: string }): Promise<string> };
    proxy: boolean;
  }

  export const interactionPolicy: {
    base(): { get(prompt: string): { readonly checks: { remove(check: string): void } } };
  };
  export const errors: { readonly InvalidGrant: new (description: string) => Error };
  export default Provider;
}
