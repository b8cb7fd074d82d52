/** Runs psql commands and returns their output. */
import { run } from './tools.js';

/** Output of a program, whether it succeeded or failed. */
interface Ran {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs psql commands on a server and returns the output, including errors. */
export function psqlFor(port: number): (command: string) => Promise<string> {
  const connection = ['-h', '127.0.0.1', '-p', String(port), '-U', 'admin', '-d', 'qdb'];
  const env = { ...process.env, PGPASSWORD: 'quest' };
  return async (command) => {
    const args = [...connection, '-X', '-A', '-c', command];
    const ran = run('psql', args, { env }).catch((error: unknown) => error as Ran);
    const { stdout, stderr } = await ran;
    return stderr === '' || stderr.startsWith('Did not find') ? stdout : `ERROR ${stderr}`;
  };
}

/** Returns the titles and column names that psql printed. */
export function headings(text: string): string[] {
  const lines = text.split('\n');
  const isTitle = (line: string): boolean =>
    /^(?:List of|[A-Z][a-z ]* (?:privileges|functions|settings)|\w+ ".*")/.test(line);
  const out: string[] = [];
  lines.forEach((line, index) => {
    if (line.startsWith('ERROR') || isTitle(line)) {
      out.push(line);
      const next = lines[index + 1] ?? '';
      if (isTitle(line) && next.includes('|')) {
        out.push(next);
      }
    }
  });
  return out;
}
