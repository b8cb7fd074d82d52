import { readFileSync } from 'node:fs';
import test from 'ava';

/**
 * Checks contrast according to WCAG 2.2: each colour role on every background on which it is used.
 */
const SOURCE = readFileSync('ts/console/src/styles/tokens.css', 'utf8');
const THEMES = ['light', 'dark', 'contrast'] as const;

const TEXT_GROUNDS = ['bg-app', 'bg-surface', 'bg-raised', 'bg-sunken', 'bg-hover', 'bg-selected'];
const STATE_GROUNDS = ['bg-surface', 'bg-app', 'bg-selected'];
const ON_EDITOR = ['bg-surface', 'bg-active-line', 'bg-selected'];

interface Rule {
  readonly role: string;
  readonly grounds: readonly string[];
  readonly minContrast: number;
}

const SYNTAX = ['keyword', 'function', 'string', 'number', 'variable', 'comment', 'operator'];
const RULES: readonly Rule[] = [
  ...['text', 'text-muted', 'text-faint', 'null', 'accent-text'].map((role) => ({
    role,
    grounds: TEXT_GROUNDS,
    minContrast: 4.5,
  })),
  ...['accent', 'focus'].map((role) => ({ role, grounds: STATE_GROUNDS, minContrast: 3 })),
  { role: 'line-control', grounds: ['bg-surface', 'bg-app'], minContrast: 3 },
  { role: 'on-accent', grounds: ['accent', 'accent-hover'], minContrast: 4.5 },
  { role: 'on-danger', grounds: ['danger', 'danger-hover'], minContrast: 4.5 },
  ...['ok', 'warn', 'error'].map((role) => ({
    role,
    grounds: [...STATE_GROUNDS, ...(role === 'ok' ? ['ok-bg'] : [`${role}-bg`])],
    minContrast: 4.5,
  })),
  ...SYNTAX.map((name) => ({ role: `syn-${name}`, grounds: ON_EDITOR, minContrast: 4.5 })),
  ...Array.from({ length: 8 }, (_, index) => ({
    role: `chart-${index + 1}`,
    grounds: ['bg-surface'],
    minContrast: 3,
  })),
];

function rolesOf(theme: string): Map<string, string> {
  const roles = new Map<string, string>();
  for (const [, selector, body] of SOURCE.matchAll(/([^{}]+)\{([^{}]*)\}/g)) {
    const shared = /(^|\s):root\s*(,|$)/.test(selector ?? '');
    if (!shared && !selector?.includes(`"${theme}"`)) {
      continue;
    }
    for (const [, name, value] of (body ?? '').matchAll(/--([\w-]+):\s*(#[\da-f]{6})\b/gi)) {
      roles.set(name ?? '', value ?? '');
    }
  }
  return roles;
}

function luminance(colour: string): number {
  const channelAt = (at: number): number => {
    const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channelAt(1) + 0.7152 * channelAt(3) + 0.0722 * channelAt(5);
}

function contrast(one: string, other: string): number {
  const [left, right] = [luminance(one), luminance(other)];
  return (Math.max(left, right) + 0.05) / (Math.min(left, right) + 0.05);
}

for (const theme of THEMES) {
  test(`the ${theme} theme meets the contrast requirements`, (t) => {
    const roles = rolesOf(theme);
    for (const { role, grounds, minContrast } of RULES) {
      for (const ground of grounds) {
        const [front, back] = [roles.get(role), roles.get(ground)];
        if (front === undefined || back === undefined) {
          t.fail(`${role} on ${ground} is not defined`);
          continue;
        }
        const ratio = contrast(front, back);
        t.true(ratio >= minContrast, `${role} on ${ground}: ${ratio.toFixed(2)} < ${minContrast}`);
      }
    }
  });
}
