/**
 * Runtime for compiled JSX: Solid's runtime with one function replaced.
 *
 * The console runs under `require-trusted-types-for 'script'`. Solid creates elements from template
 * markup through `innerHTML`, which that directive forbids. This module creates them through its
 * own Trusted Types policy. The policy is not exported and receives only compiler output; values
 * from the server reach the page as text nodes.
 */
import { untrack } from 'solid-js';

export * from 'solid-js/web';

interface TemplatePolicy {
  createHTML(html: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: TemplatePolicy): TemplatePolicy;
}

const rules: TemplatePolicy = { createHTML: (html) => html };
const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
const policy = trustedTypes?.createPolicy('tidemark-templates', rules) ?? rules;

/** Returns a function that parses the template on its first call and clones it on every call. */
export function template(html: string, isImportNode?: boolean, isSvg?: boolean): () => Node {
  let parsed: Node | undefined;
  const parse = (): Node => {
    const container = document.createElement('template');
    container.innerHTML = policy.createHTML(html);
    const first = container.content.firstChild;
    return (isSvg ? first?.firstChild : first) as Node;
  };
  return () => {
    parsed ??= parse();
    const source = parsed;
    return isImportNode ? untrack(() => document.importNode(source, true)) : source.cloneNode(true);
  };
}
