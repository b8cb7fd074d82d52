/** What an answer of the columnar protocol (QWP) may say, on rows that come or results that go. */
export const STATUS = {
  ok: 0,
  durable: 2,
  schemaMismatch: 3,
  parseError: 5,
  internalError: 6,
  securityError: 8,
  writeError: 9,
  cancelled: 10,
  limitExceeded: 11,
  /** The time that a client gave its query is over. */
  queryTimeout: 14,
} as const;
