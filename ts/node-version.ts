/** The oldest version of Node.js that runs the server, as declared in `package.json`. */
export const MIN_NODE = '20.19';

export function nodeIsSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [minMajor = 0, minMinor = 0] = MIN_NODE.split('.').map(Number);
  return major > minMajor || (major === minMajor && minor >= minMinor);
}
