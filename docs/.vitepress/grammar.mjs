/**
 * Grammar blocks on the site: each rule name links to its definition, even on another page.
 * `test/documentation/ebnf.ts` describes the notation.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const BLOCK = /^```ebnf\n(.*?)^```$/gms;
const DEFINITION = /^([a-z]\w*)\s*=/gm;
/** Matches descriptions, quoted text, keywords and rule names. */
const TOKEN = /\?[^?]*\?|"[^"]+"|[A-Z][A-Z0-9_]*|[a-z][a-z0-9_]*/g;

/** Maps each rule name to its address on the site. */
function addressesOf(folder) {
  const addresses = new Map();
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.md')) {
      const page = file.replaceAll(path.sep, '/').slice(0, -'.md'.length);
      const blocks = [...readFileSync(path.join(folder, file), 'utf8').matchAll(BLOCK)];
      for (const [, name] of blocks.flatMap(([, block]) => [...block.matchAll(DEFINITION)])) {
        addresses.set(name, `/${page}#rule-${name}`);
      }
    }
  }
  return addresses;
}

/** Makes the Markdown renderer render grammar blocks. */
export function renderGrammar(md, folder) {
  const addresses = addressesOf(folder);
  const { fence } = md.renderer.rules;
  const { escapeHtml } = md.utils;
  const rendered = (token, offset, block) => {
    if (/^["?]/.test(token)) {
      return escapeHtml(token);
    }
    if (/^[A-Z]/.test(token)) {
      return `<strong>${token}</strong>`;
    }
    const isDefinition = offset === 0 || block[offset - 1] === '\n';
    return isDefinition
      ? `<span id="rule-${token}">${token}</span>`
      : `<a href="${addresses.get(token)}">${token}</a>`;
  };
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index];
    if (info.trim() !== 'ebnf') {
      return fence(tokens, index, ...rest);
    }
    let html = '';
    let end = 0;
    for (const match of content.matchAll(TOKEN)) {
      html += escapeHtml(content.slice(end, match.index));
      html += rendered(match[0], match.index, content);
      end = match.index + match[0].length;
    }
    html += escapeHtml(content.slice(end));
    return `<div class="language-ebnf"><pre><code v-pre>${html}</code></pre></div>\n`;
  };
}
