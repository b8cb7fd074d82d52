/**
 * A tolerant scanner of SQL text for the editor: colours, statement borders, the word at a place.
 *
 * Unlike the parser's lexer it never fails: an unclosed string or comment runs to the end of the
 * text, because that is what a half-typed statement looks like. It knows no grammar.
 */
import { isAlsoFunction, isKeyword } from "./keywords.js";

export type TokenKind =
  | "keyword"
  | "function"
  | "identifier"
  | "string"
  | "number"
  | "variable"
  | "comment"
  | "operator"
  | "separator";

export interface Token {
  readonly kind: TokenKind;
  readonly start: number;
  readonly end: number;
}

const WORD = /[\p{L}\p{N}_$]/uy;
const NUMBER = /(?:0[xX][\da-fA-F]+|(?:\d[\d_]*)?\.?\d[\d_]*(?:[eE][+-]?\d+)?\w*)/y;
const BLANK = /\s+/y;
const GEOHASH = /##?[\da-zA-Z]+(?:\/\d+)?/y;
const VARIABLE = /(?:[@:][\p{L}_][\p{L}\p{N}_]*|\$\d+)/uy;

/** Every token of the text, in order; blanks are left out. */
export function scan(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const blank = endOf(BLANK, text, at);
    if (blank > at) {
      at = blank;
      continue;
    }
    const token = tokenAt(text, at);
    tokens.push(token);
    at = token.end;
  }
  return tokens;
}

function tokenAt(text: string, start: number): Token {
  const first = text.charAt(start);
  const pair = text.slice(start, start + 2);
  if (pair === "--") return { kind: "comment", start, end: lineEnd(text, start) };
  if (pair === "/*") return { kind: "comment", start, end: after(text, "*/", start + 2) };
  if (first === "'") return { kind: "string", start, end: quoteEnd(text, start) };
  if (first === '"' || first === "`") {
    return { kind: "identifier", start, end: quoteEnd(text, start) };
  }
  if (first === ";") return { kind: "separator", start, end: start + 1 };
  const variable = endOf(VARIABLE, text, start);
  if (variable > start) return { kind: "variable", start, end: variable };
  if (/\d/.test(first) || /^\.\d/.test(pair)) {
    return { kind: "number", start, end: Math.max(start + 1, endOf(NUMBER, text, start)) };
  }
  const geohash = endOf(GEOHASH, text, start);
  if (geohash > start) return { kind: "number", start, end: geohash };
  const word = wordEnd(text, start);
  if (word > start) return { kind: wordKind(text, start, word), start, end: word };
  return { kind: "operator", start, end: start + (text.codePointAt(start)! > 0xffff ? 2 : 1) };
}

function wordKind(text: string, start: number, end: number): TokenKind {
  const word = text.slice(start, end);
  const called = /^\s*\(/.test(text.slice(end, end + 8));
  if (isKeyword(word) && !(called && isAlsoFunction(word))) return "keyword";
  return called ? "function" : "identifier";
}

function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : from;
}

function wordEnd(text: string, from: number): number {
  let at = from;
  for (;;) {
    const next = endOf(WORD, text, at);
    if (next === at) return at;
    at = next;
  }
}

function lineEnd(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at < 0 ? text.length : at;
}

function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at + mark.length;
}

/** A doubled quote inside stands for itself. */
function quoteEnd(text: string, start: number): number {
  const quote = text.charAt(start);
  for (let at = start + 1; at < text.length; at++) {
    if (text.charAt(at) !== quote) continue;
    if (text.charAt(at + 1) !== quote) return at + 1;
    at++;
  }
  return text.length;
}
