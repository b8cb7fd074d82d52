/** The current theme. The theme-boot script sets it before the first paint. */
import { createSignal } from 'solid-js';
import { texts } from '../texts.js';

const THEMES = ['light', 'dark', 'contrast'] as const;
type Theme = (typeof THEMES)[number];

const KEY = 'tidemark.theme';

export const THEME_NAMES: Readonly<Record<Theme, string>> = {
  light: texts.themes.light,
  dark: texts.themes.dark,
  contrast: texts.themes.highContrast,
};

function current(): Theme {
  const set = document.documentElement.dataset['theme'];
  return THEMES.find((theme) => theme === set) ?? 'light';
}

const [theme, setSignal] = createSignal<Theme>(current());
export { theme };

export function setTheme(next: Theme): void {
  document.documentElement.dataset['theme'] = next;
  setSignal(next);
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage is disabled: the theme lasts until the page is closed.
  }
}

export function nextTheme(): Theme {
  return THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? 'light';
}
