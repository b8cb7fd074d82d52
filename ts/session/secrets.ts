/** Passwords and tokens in statements, hidden from whoever sees the text of others. */
import { scan, TokenKind } from '../sql/lexer.js';

/** Texts without these words hold no secrets. */
const MENTIONED = /password|\btoken\b|tdm_/i;
const TOKEN = /'?tdm_[\w-]{10,}'?/g;
const MASK = "'****'";

/**
 * The text with a mask for what stands after PASSWORD, `TOKEN TYPE REST` and `password =`, and for
 * everything that looks like a token.
 */
export function withoutSecrets(text: string): string {
  if (!MENTIONED.test(text)) {
    return text;
  }
  const { kinds, values, starts, ends } = scan(text);
  let shown = '';
  let from = 0;
  for (let index = 0; index < kinds.length - 1; index += 1) {
    const at = secretAfter(values, index);
    const start = at === null ? undefined : starts[at];
    const end = at === null ? undefined : ends[at];
    const isText = at !== null && (kinds[at] === TokenKind.String || kinds[at] === TokenKind.Word);
    if (isText && start !== undefined && end !== undefined && start >= from) {
      shown += text.slice(from, start) + MASK;
      from = end;
    }
  }
  return (shown + text.slice(from)).replace(TOKEN, MASK);
}

/** The index of the secret that the word at `index` announces. */
function secretAfter(values: readonly string[], index: number): number | null {
  const word = values[index];
  if (word === 'PASSWORD') {
    return values[index + 1] === '=' ? index + 2 : index + 1;
  }
  const isRest = word === 'REST' && values[index - 1] === 'TYPE' && values[index + 1] !== 'WITH';
  return isRest ? index + 1 : null;
}
