/** The command tag for an engine statement. */
export function commandTag(kind: string, command: string, rows: number): string {
  const word = command.toUpperCase();
  switch (kind) {
    case 'select':
      return word === 'EXPLAIN' ? 'EXPLAIN' : `SELECT ${rows}`;
    case 'insert':
      return `INSERT 0 ${rows}`;
    case 'update':
      return `${word === 'DELETE' ? 'DELETE' : 'UPDATE'} ${rows}`;
    default:
      return word === '' ? 'OK' : word;
  }
}
