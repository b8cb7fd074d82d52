/** Random sentences from a grammar. Alternatives that were chosen less often are preferred. */
import type { Random } from '../torture/harness.js';
import { referencesOf, type Form, type Grammar } from './ebnf.js';

/** An alternative, an option or a repetition. */
interface Choice {
  readonly form: Form;
  /** The rule that contains the choice, and the choice's notation. */
  readonly text: string;
}

/** Returns a token for a terminal that the grammar describes in words. */
export type Terminal = (random: Random, before: readonly string[]) => string;

/** Beyond this many tokens, a sentence is completed as briefly as possible. */
const MAX_TOKENS = 80;
/** Beyond this nesting depth of rules, a sentence is completed as briefly as possible. */
const MAX_DEPTH = 40;
/** Up to this depth, options are used even in a long sentence. */
const SHALLOW = 3;
const OPTIONAL = 0.4;
const REPEATED = 0.35;
/** Probability of choosing the least used alternative instead of a random one. */
const RARE = 0.5;

export class Derivations {
  readonly #grammar: Grammar;
  readonly #terminals: Readonly<Record<string, Terminal>>;
  readonly #random: Random;
  /** Minimum rule nesting depth needed to complete each form. */
  readonly #heights = new Map<Form, number>();
  /** The forms that contain a form. */
  readonly #parents = new Map<Form, readonly Form[]>();
  /** How often each alternative was derived. */
  readonly #uses = new Map<Form, number>();
  /** Steps from each form to the form that a sentence must use. */
  #distances: ReadonlyMap<Form, number> = new Map();

  constructor(grammar: Grammar, terminals: Readonly<Record<string, Terminal>>, random: Random) {
    this.#grammar = grammar;
    this.#terminals = terminals;
    this.#random = random;
    this.#measure();
    for (const { body } of grammar.values()) {
      this.#connect(body);
    }
  }

  /** Rules from which no sentence can be derived. */
  get endless(): readonly string[] {
    const rules = [...this.#grammar.values()];
    return rules.filter(({ body }) => this.#height(body) === Infinity).map(({ name }) => name);
  }

  /** The alternatives, options and repetitions that can occur in a rule's sentences. */
  choices(start: string): readonly Choice[] {
    return [...this.#reachable(start)].flatMap((rule) =>
      choicesOf(this.#rule(rule)).map((form) => ({ form, text: `${rule}: ${written(form)}` })),
    );
  }

  /** The tokens of a random sentence for a rule. */
  sentence(start: string): readonly string[] {
    const tokens: string[] = [];
    this.#deriveRule(start, tokens, 0);
    return tokens;
  }

  /** The tokens of a random sentence for a rule; the sentence uses the given choice. */
  sentenceWith(start: string, { form }: Choice): readonly string[] {
    this.#distances = this.#distancesTo(form);
    const tokens: string[] = [];
    this.#seek({ form: 'rule', name: start }, tokens, 0);
    return tokens;
  }

  /** A rule and the rules that it refers to, directly or indirectly. */
  #reachable(start: string): ReadonlySet<string> {
    const names = new Set([start]);
    for (const name of names) {
      referencesOf(this.#rule(name)).forEach((other) => names.add(other));
    }
    return names;
  }

  #deriveRule(name: string, tokens: string[], depth: number): void {
    const terminal = this.#terminals[name];
    if (terminal !== undefined) {
      tokens.push(terminal(this.#random, tokens));
      return;
    }
    this.#derive(this.#rule(name), tokens, depth + 1);
  }

  #rule(name: string): Form {
    const rule = this.#grammar.get(name);
    if (rule === undefined) {
      throw new Error(`rule ${name} is not defined`);
    }
    return rule.body;
  }

  #derive(form: Form, tokens: string[], depth: number): void {
    switch (form.form) {
      case 'keyword':
        tokens.push(this.#random.next() < 0.5 ? form.word : form.word.toLowerCase());
        return;
      case 'text':
        tokens.push(form.text);
        return;
      case 'rule':
        this.#deriveRule(form.name, tokens, depth);
        return;
      case 'sequence':
        for (const member of form.members) {
          this.#derive(member, tokens, depth);
        }
        return;
      case 'choice':
        this.#derive(this.#chosen(form.members, tokens, depth), tokens, depth);
        return;
      case 'optional':
        if (this.#wants(form.member, OPTIONAL, tokens, depth)) {
          this.#derive(form.member, tokens, depth);
        }
        return;
      case 'repeated':
        while (this.#wants(form.member, REPEATED, tokens, depth)) {
          this.#derive(form.member, tokens, depth);
        }
        return;
      case 'described':
        throw new Error('a terminal that is described in words is a rule of its own');
    }
  }

  /**
   * Derives a form so that the sentence uses the target form. The computed distances lead to it.
   */
  #seek(form: Form, tokens: string[], depth: number): void {
    if (this.#distance(form) === 0) {
      this.#derive(form, tokens, depth);
      return;
    }
    switch (form.form) {
      case 'rule':
        this.#seek(this.#rule(form.name), tokens, depth + 1);
        return;
      case 'choice':
        this.#seek(this.#random.pick(this.#nearest(form.members)), tokens, depth);
        return;
      case 'sequence': {
        const next = this.#random.pick(this.#nearest(form.members));
        for (const member of form.members) {
          if (member === next) {
            this.#seek(member, tokens, depth);
          } else {
            this.#derive(member, tokens, depth);
          }
        }
        return;
      }
      case 'optional':
      case 'repeated':
        this.#seek(form.member, tokens, depth);
        return;
      case 'keyword':
      case 'text':
      case 'described':
        throw new Error('the grammar does not lead to the choice');
    }
  }

  #isLong(tokens: readonly string[], depth: number): boolean {
    return depth >= MAX_DEPTH || (tokens.length >= MAX_TOKENS && depth > SHALLOW);
  }

  #chosen(members: readonly Form[], tokens: readonly string[], depth: number): Form {
    let candidates = members;
    if (this.#isLong(tokens, depth)) {
      candidates = lowest(members, (member) => this.#height(member));
    } else if (this.#random.next() < RARE) {
      candidates = lowest(members, (member) => this.#uses.get(member) ?? 0);
    }
    const form = this.#random.pick(candidates);
    this.#use(form);
    return form;
  }

  #wants(form: Form, chance: number, tokens: readonly string[], depth: number): boolean {
    const isWanted = !this.#isLong(tokens, depth) && this.#random.next() < chance;
    if (isWanted) {
      this.#use(form);
    }
    return isWanted;
  }

  #use(form: Form): void {
    this.#uses.set(form, (this.#uses.get(form) ?? 0) + 1);
  }

  // ---- distances to a form ----

  #distance(form: Form): number {
    return this.#distances.get(form) ?? Infinity;
  }

  #nearest(members: readonly Form[]): readonly Form[] {
    return lowest(members, (member) => this.#distance(member));
  }

  /** Minimum number of steps from each form to `target`. */
  #distancesTo(target: Form): ReadonlyMap<Form, number> {
    const distances = new Map<Form, number>([[target, 0]]);
    for (const [form, distance] of distances) {
      for (const parent of this.#parents.get(form) ?? []) {
        if (!distances.has(parent)) {
          distances.set(parent, distance + 1);
        }
      }
    }
    return distances;
  }

  /** For each form, collects the forms that contain it or refer to its rule. */
  #connect(form: Form): void {
    const members = form.form === 'rule' ? [this.#rule(form.name)] : membersOf(form);
    for (const member of members) {
      this.#parents.set(member, [...(this.#parents.get(member) ?? []), form]);
    }
    membersOf(form).forEach((member) => {
      this.#connect(member);
    });
  }

  // ---- shortest derivations ----

  /** Computes the heights of all rules. Recursive rules need several passes. */
  #measure(): void {
    for (let changed = true; changed;) {
      changed = false;
      for (const { body } of this.#grammar.values()) {
        const before = this.#height(body);
        changed = this.#measured(body) < before || changed;
      }
    }
  }

  #height(form: Form): number {
    return this.#heights.get(form) ?? Infinity;
  }

  #measured(form: Form): number {
    const height = this.#computed(form);
    this.#heights.set(form, height);
    return height;
  }

  #computed(form: Form): number {
    switch (form.form) {
      case 'keyword':
      case 'text':
      case 'described':
        return 0;
      case 'rule':
        return 1 + (form.name in this.#terminals ? 0 : this.#height(this.#rule(form.name)));
      case 'sequence':
        return Math.max(...form.members.map((member) => this.#measured(member)));
      case 'choice':
        return Math.min(...form.members.map((member) => this.#measured(member)));
      case 'optional':
      case 'repeated':
        this.#measured(form.member);
        return 0;
    }
  }
}

/** The members with the lowest measure. */
function lowest(members: readonly Form[], measure: (member: Form) => number): readonly Form[] {
  const least = Math.min(...members.map(measure));
  return members.filter((member) => measure(member) === least);
}

/** The direct members of a form. */
function membersOf(form: Form): readonly Form[] {
  switch (form.form) {
    case 'choice':
    case 'sequence':
      return form.members;
    case 'optional':
    case 'repeated':
      return [form.member];
    case 'keyword':
    case 'text':
    case 'rule':
    case 'described':
      return [];
  }
}

/** The alternatives, options and repetitions in a form. */
function choicesOf(form: Form): readonly Form[] {
  const members = membersOf(form);
  return [...(form.form === 'sequence' ? [] : members), ...members.flatMap(choicesOf)];
}

function written(form: Form): string {
  switch (form.form) {
    case 'keyword':
      return form.word;
    case 'text':
      return `"${form.text}"`;
    case 'rule':
      return form.name;
    case 'sequence':
      return form.members.map(written).join(' ');
    case 'choice':
      return `( ${form.members.map(written).join(' | ')} )`;
    case 'optional':
      return `[ ${written(form.member)} ]`;
    case 'repeated':
      return `{ ${written(form.member)} }`;
    case 'described':
      return '? … ?';
  }
}
