/** An import error that the sender can fix; its message becomes the status of the response. */
export class ImportError extends Error {
  override readonly name = 'ImportError';
}
