// Sets the theme before the first paint. The build emits this file as a classic script, so no
// module may import it. The saved theme takes precedence over the system's preference.
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
