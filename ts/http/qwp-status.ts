/** Status codes of the columnar protocol (QWP), for ingestion and queries. */
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
  /** The timeout specified by the client expired. */
  queryTimeout: 14,
} as const;
