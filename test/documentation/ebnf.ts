/** The documentation's grammar blocks: their notation, and the rules from all pages together. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';

/** The right-hand side of a rule, or a component of it. */
export type Form =
  | { readonly form: 'keyword'; readonly word: string }
  | { readonly form: 'text'; readonly text: string }
  | { readonly form: 'rule'; readonly name: string }
  /** A terminal that is described in words. */
  | { readonly form: 'described' }
  | { readonly form: 'sequence' | 'choice'; readonly members: readonly Form[] }
  | { readonly form: 'optional' | 'repeated'; readonly member: Form };

interface Rule {
  readonly name: string;
  /** The page that defines the rule. */
  readonly page: string;
  readonly body: Form;
}

export type Grammar = ReadonlyMap<string, Rule>;

const BLOCK = /^```ebnf\n(.*?)^```$/gms;
/** Comments, descriptions, quoted text, keywords, rule names, punctuation. */
const TOKEN =
  /\s+|\(\*.*?\*\)|(\?[^?]*\?|"[^"]+"|[A-Z][A-Z0-9_]*(?![a-z])|[a-z][a-z0-9_]*|[=|;[\]{}()])/gsy;

/** Reads the blocks of all pages below a folder. Throws if two blocks define the same rule. */
export function readGrammar(folder: string): Grammar {
  const rules = new Map<string, Rule>();
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  for (const file of files.filter((name) => name.endsWith('.md')).sort()) {
    const text = readFileSync(join(folder, file), 'utf8');
    for (const rule of rulesOf(file.replaceAll(sep, '/'), text)) {
      const other = rules.get(rule.name);
      if (other !== undefined) {
        throw new Error(`${rule.name} is defined in ${other.page} and in ${rule.page}`);
      }
      rules.set(rule.name, rule);
    }
  }
  return rules;
}

/** The rules in the blocks of one page. */
export function rulesOf(page: string, text: string): readonly Rule[] {
  return [...text.matchAll(BLOCK)].flatMap(([, block = '']) => new Reader(page, block).rules());
}

/** Names of the rules that a form refers to. */
export function referencesOf(form: Form): readonly string[] {
  switch (form.form) {
    case 'rule':
      return [form.name];
    case 'sequence':
    case 'choice':
      return form.members.flatMap(referencesOf);
    case 'optional':
    case 'repeated':
      return referencesOf(form.member);
    case 'keyword':
    case 'text':
    case 'described':
      return [];
  }
}

/** The keywords in a form. */
export function keywordsOf(form: Form): readonly string[] {
  switch (form.form) {
    case 'keyword':
      return [form.word];
    case 'text':
      return [form.text.toUpperCase()];
    case 'sequence':
    case 'choice':
      return form.members.flatMap(keywordsOf);
    case 'optional':
    case 'repeated':
      return keywordsOf(form.member);
    case 'rule':
    case 'described':
      return [];
  }
}

/** Reads one block. */
class Reader {
  readonly #page: string;
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(page: string, block: string) {
    this.#page = page;
    const tokens: string[] = [];
    let end = 0;
    for (const match of block.matchAll(TOKEN)) {
      end = match.index + match[0].length;
      tokens.push(...(match[1] === undefined ? [] : [match[1]]));
    }
    if (end < block.length) {
      throw new Error(`${page}: cannot read the grammar at: ${block.slice(end, end + 40)}`);
    }
    this.#tokens = tokens;
  }

  rules(): readonly Rule[] {
    const rules: Rule[] = [];
    while (this.#at < this.#tokens.length) {
      const name = this.#take();
      if (!/^[a-z]/.test(name)) {
        this.#fail(`name of a rule expected, found ${name}`);
      }
      this.#expect('=');
      rules.push({ name, page: this.#page, body: this.#choice() });
      this.#expect(';');
    }
    return rules;
  }

  #peek(): string {
    return this.#tokens[this.#at] ?? '';
  }

  #take(): string {
    const token = this.#peek();
    this.#at += 1;
    return token;
  }

  #expect(mark: string): void {
    const found = this.#take();
    if (found !== mark) {
      this.#fail(`${mark} expected, found ${found}`);
    }
  }

  #fail(message: string): never {
    const before = this.#tokens.slice(Math.max(0, this.#at - 8), this.#at).join(' ');
    throw new Error(`${this.#page}: ${message}, after: ${before}`);
  }

  #choice(): Form {
    const members = [this.#sequence()];
    while (this.#peek() === '|') {
      this.#take();
      members.push(this.#sequence());
    }
    const [only] = members;
    return members.length === 1 && only !== undefined ? only : { form: 'choice', members };
  }

  #sequence(): Form {
    const members: Form[] = [];
    while (!['', '|', ';', ')', ']', '}', '='].includes(this.#peek())) {
      members.push(this.#member());
    }
    const [only] = members;
    if (only === undefined) {
      this.#fail('empty alternative');
    }
    return members.length === 1 ? only : { form: 'sequence', members };
  }

  #member(): Form {
    const token = this.#take();
    switch (token.charAt(0)) {
      case '(':
        return this.#closed(')');
      case '[':
        return { form: 'optional', member: this.#closed(']') };
      case '{':
        return { form: 'repeated', member: this.#closed('}') };
      case '"':
        return { form: 'text', text: token.slice(1, -1) };
      case '?':
        return { form: 'described' };
      default:
        return /^[A-Z]/.test(token)
          ? { form: 'keyword', word: token }
          : { form: 'rule', name: token };
    }
  }

  #closed(mark: string): Form {
    const form = this.#choice();
    this.#expect(mark);
    return form;
  }
}
