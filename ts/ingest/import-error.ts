/** An import that cannot go on for a reason its sender can act on: becomes the answer's status. */
export class ImportError extends Error {
  override readonly name = 'ImportError';
}
