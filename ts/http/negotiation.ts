/** What the client can take. */
import type { IncomingMessage } from 'node:http';

/** Whether `gzip` is asked for by name with a quality above 0. */
export function acceptsGzip(request: IncomingMessage): boolean {
  const header = request.headers['accept-encoding'];
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text.split(',').some((item) => {
    const [coding = '', ...traits] = item.split(';').map((part) => part.trim().toLowerCase());
    const quality = traits.find((trait) => trait.startsWith('q='))?.slice(2) ?? '1';
    return (coding === 'gzip' || coding === 'x-gzip') && Number(quality) > 0;
  });
}
