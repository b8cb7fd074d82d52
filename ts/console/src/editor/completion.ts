/** Completion from what the console knows: tables, columns of opened tables, keywords. */
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { quoted } from "../schema/model.js";
import { KEYWORDS } from "../sql/keywords.js";
import { tokens } from "./text.js";

export interface KnownNames {
  readonly tables: readonly string[];
  readonly columns: readonly string[];
}

const AFTER_TABLE_WORD = /\b(?:from|join|into|table|update|truncate|describe)\s+["\w]*$/i;

export function completions(
  names: () => KnownNames,
): (context: CompletionContext) => CompletionResult | null {
  return (context) => {
    const word = context.matchBefore(/["\w]+$/);
    if (!word && !context.explicit) return null;
    const from = word?.from ?? context.pos;
    const inside = context.state
      .field(tokens)
      .find((token) => token.start < context.pos && context.pos <= token.end);
    if (inside && ["string", "comment", "number"].includes(inside.kind)) return null;
    const { tables, columns } = names();
    const line = context.state.sliceDoc(Math.max(0, from - 200), context.pos);
    const wantsTable = AFTER_TABLE_WORD.test(line);
    const options: Completion[] = [
      ...tables.map((name) => offer(name, "table", wantsTable ? 3 : 1)),
      ...columns.map((name) => offer(name, "column", wantsTable ? 0 : 2)),
      ...KEYWORDS.map((label) => ({ label, type: "keyword", boost: wantsTable ? -2 : -1 })),
    ];
    return { from, options, validFor: /^["\w]*$/ };
  };
}

function offer(name: string, detail: string, boost: number): Completion {
  return { label: name, apply: quoted(name), detail, boost };
}
