/** Messages for Kafka Connect, as its JSON converter reads them. */
export const START_MS = Date.parse('2026-01-01T10:00:00Z');

type Value = readonly [schema: object, value: unknown];
export type Fields = Readonly<Record<string, Value>>;

export function logical(type: string, name: string, more: object = {}): object {
  return { type, name: `org.apache.kafka.connect.data.${name}`, version: 1, ...more };
}

export const optional = (schema: object): object => ({ ...schema, optional: true });
export const text = (value: string): Value => [{ type: 'string' }, value];
export const at = (second: number): Value => [
  logical('int64', 'Timestamp'),
  START_MS + second * 1000,
];

/** A struct with its schema. */
export function message(fields: Fields): string {
  const entries = Object.entries(fields);
  return JSON.stringify({
    schema: {
      type: 'struct',
      fields: entries.map(([field, [schema]]) => ({ field, ...schema })),
    },
    payload: Object.fromEntries(entries.map(([field, [, value]]) => [field, value])),
  });
}

export function reading(second: number, sensor: string, value: number, more: Fields = {}): string {
  const type = optional({ type: 'double' });
  return message({ ts: at(second), sensor: text(sensor), value: [type, value], ...more });
}
