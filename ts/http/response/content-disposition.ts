/** Creates a `Content-Disposition: attachment` header with an unambiguous file name. */

const MAX_NAME_LENGTH = 200;

export function contentDisposition(name: string): string {
  // Quotes and backslashes could end the name, and path separators could select another directory.
  const safe = name.replace(/[\u0000-\u001f\u007f"\\/]/g, '_').slice(-MAX_NAME_LENGTH);
  const ascii = safe.replace(/[^\x20-\x7e]/g, '_');
  const header = `attachment; filename="${ascii}"`;
  return ascii === safe ? header : `${header}; filename*=UTF-8''${encode(safe)}`;
}

function encode(name: string): string {
  return encodeURIComponent(name.replace(/\p{Surrogate}/gu, '_')).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
