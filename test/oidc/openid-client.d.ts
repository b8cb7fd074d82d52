/**
 * Declarations of the API that the tests use, because the package's own declarations require
 * browser types.
 */
declare module 'openid-client' {
  export interface Configuration {
    readonly brand: 'configuration';
  }
  export interface TokenAnswer {
    readonly access_token: string;
    readonly token_type: string;
    readonly expires_in?: number;
  }
  export type ClientAuthentication = (...parts: never[]) => void;
  export function None(): ClientAuthentication;
  export function allowInsecureRequests(configuration: Configuration): void;
  export function discovery(
    server: URL,
    clientId: string,
    metadata?: unknown,
    authentication?: ClientAuthentication,
    options?: { readonly execute?: readonly ((configuration: Configuration) => void)[] },
  ): Promise<Configuration>;
  export function genericGrantRequest(
    configuration: Configuration,
    grantType: string,
    parameters: Readonly<Record<string, string>>,
  ): Promise<TokenAnswer>;
  export function fetchProtectedResource(
    configuration: Configuration,
    accessToken: string,
    url: URL,
    method: string,
  ): Promise<Response>;
}
