/** Properties of column types, as the console needs them. */

export type Family =
  'time' | 'integer' | 'decimal' | 'boolean' | 'symbol' | 'text' | 'array' | 'binary' | 'other';

const FAMILIES: Readonly<Record<string, Family>> = {
  TIMESTAMP: 'time',
  TIMESTAMP_NS: 'time',
  DATE: 'time',
  BYTE: 'integer',
  SHORT: 'integer',
  INT: 'integer',
  LONG: 'integer',
  FLOAT: 'decimal',
  DOUBLE: 'decimal',
  BOOLEAN: 'boolean',
  SYMBOL: 'symbol',
  STRING: 'text',
  VARCHAR: 'text',
  CHAR: 'text',
  ARRAY: 'array',
  BINARY: 'binary',
};

const TAGS: Readonly<Record<string, string>> = {
  TIMESTAMP: 'ts',
  TIMESTAMP_NS: 'ns',
  DATE: 'date',
  SYMBOL: 'sym',
  BOOLEAN: '0/1',
  UUID: 'id',
  IPv4: 'ip',
};

export function familyOf(type: string): Family {
  const known = FAMILIES[type];
  if (known) {
    return known;
  }
  if (type.startsWith('DECIMAL')) {
    return 'decimal';
  }
  if (type.endsWith('[]')) {
    return 'array';
  }
  return 'other';
}

/** True if a type is numeric. Only numeric columns are right-aligned. */
export function isNumeric(type: string): boolean {
  const family = familyOf(type);
  return family === 'integer' || family === 'decimal';
}

/** Returns the abbreviation of a type. Used where the full name does not fit. */
export function typeTag(type: string): string {
  const tag = TAGS[type];
  if (tag) {
    return tag;
  }
  if (type.startsWith('GEOHASH')) {
    return 'geo';
  }
  switch (familyOf(type)) {
    case 'integer':
      return '123';
    case 'decimal':
      return '1.0';
    case 'array':
      return '[ ]';
    case 'text':
      return 'Aa';
    case 'time':
      return 'ts';
    case 'boolean':
    case 'symbol':
    case 'binary':
    case 'other':
      return '·';
  }
}
