// Sets the theme before the first paint. Emitted as a classic script by the build; the module
// graph may not touch it. The saved choice wins, then what the system asks for.
(() => {
  let saved = null;
  try {
    saved = localStorage.getItem('tidemark.theme');
  } catch {
    saved = null;
  }
  const system = matchMedia('(prefers-contrast: more)').matches
    ? 'contrast'
    : matchMedia('(prefers-color-scheme: dark)').matches
      ? 'dark'
      : 'light';
  const known = ['light', 'dark', 'contrast'].includes(saved);
  document.documentElement.dataset.theme = known ? saved : system;
})();
