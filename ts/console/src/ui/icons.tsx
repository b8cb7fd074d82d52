/**
 * Icons on a 16 px grid with round line caps. They always appear next to text or in a labelled
 * control.
 */
import { Show, type JSX } from 'solid-js';

interface Shape {
  readonly line?: string;
  readonly solid?: string;
  readonly faint?: string;
}

const SHAPES = {
  sql: { line: 'M2 3.5h12v9H2zM4.5 6.5l2 1.7-2 1.7M8.5 10h3' },
  start: { line: 'M3 14V2.5h8.5l-1.5 3 1.5 3H3' },
  tables: {
    line:
      'M2.5 4c0-1 2.5-1.7 5.5-1.7s5.5.7 5.5 1.7-2.5 1.7-5.5 1.7S2.5 5 2.5 4zM2.5 4v8c0 1 2.5' +
      ' 1.7 5.5 1.7s5.5-.7 5.5-1.7V4M2.5 8c0 1 2.5 1.7 5.5 1.7s5.5-.7 5.5-1.7',
  },
  import: { line: 'M8 2v7.5M5 6.8 8 9.8l3-3M2.5 10.5v3h11v-3' },
  queries: { line: 'M1.5 8.5h3l2-5 3 9 2-5.5h3' },
  access: {
    line: 'M8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.3-2.8 2.3-4 5-4s4.7 1.2 5 4',
  },
  group: {
    line:
      'M6 7.5a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM1.5 13c.2-2.5 2-3.6 4.5-3.6s4.3 1.1 4.5' +
      ' 3.6M10.5 3.4a2.1 2.1 0 0 1 0 3.9M12 9.7c1.5.5 2.3 1.6 2.5 3.3',
  },
  plan: { line: 'M6 2.5h4v3H6zM2.5 10.5h4v3h-4zM9.5 10.5h4v3h-4zM8 5.5V8M4.5 10.5V8h7v2.5' },
  more: {
    solid:
      'M3 6.8a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.4zM8 6.8a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1' +
      ' 0-2.4zM13 6.8a1.2 1.2 0 1 1 0 2.4 1.2 1.2 0 0 1 0-2.4z',
  },
  chevron: { line: 'M6 4.5 9.5 8 6 11.5' },
  down: { line: 'M4.5 6.2 8 9.7l3.5-3.5' },
  up: { line: 'M4.5 9.7 8 6.2l3.5 3.5' },
  filter: { line: 'M2.5 3.5h11L9.5 8.3v4L6.5 13.5V8.3z' },
  plus: { line: 'M8 3.5v9M3.5 8h9' },
  close: { line: 'M4.5 4.5l7 7M11.5 4.5l-7 7' },
  play: { solid: 'M5 3.2v9.6L12.5 8z' },
  follow: { line: 'M2.5 3.5h11M2.5 7h5M2.5 10.5h4M11 6.5v7M8.5 11l2.5 2.5 2.5-2.5' },
  pause: { line: 'M5.5 3.5v9M10.5 3.5v9' },
  stop: { solid: 'M5 4h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1z' },
  check: { line: 'M3.5 8.5l3 3 6-7' },
  alert: { line: 'M8 2.5 14.2 13.3H1.8zM8 6.5v3.2M8 11.3v.3' },
  search: { line: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3.5 3.5' },
  refresh: { line: 'M13 8a5 5 0 1 1-1.5-3.6M13 2.5v2.8h-2.8' },
  table: { line: 'M2.5 3h11v10h-11zM2.5 6.3h11M6.5 6.3V13' },
  layers: { line: 'M8 2.5 14 5.7 8 9 2 5.7zM2.5 8.5 8 11.5l5.5-3M2.5 11 8 14l5.5-3' },
  pulse: { line: 'M1.5 5.5h3l1.5-3 3 6 1.5-3h4M2.5 10.5h11M2.5 13.5h11' },
  view: {
    line:
      'M1.5 8C3 5.2 5.3 3.8 8 3.8S13 5.2 14.5 8C13 10.8 10.7' +
      ' 12.2 8 12.2S3 10.8 1.5 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
  },
  grid: { line: 'M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.7h11M6.2 3v10' },
  notebook: { line: 'M4.5 2.5h9v11h-9zM4.5 6.2h9M4.5 9.8h9M2.5 4.4h2M2.5 8h2M2.5 11.6h2' },
  text: { line: 'M3 4V3h10v1M8 3v10M6 13h4' },
  undo: { line: 'M5.5 3 2.5 6l3 3M2.5 6H9a4 4 0 1 1 0 8H6' },
  redo: { line: 'M10.5 3l3 3-3 3M13.5 6H7a4 4 0 1 0 0 8h3' },
  expand: { line: 'M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5 9 7M2.5 13.5 7 9' },
  drag: {
    solid:
      'M5.5 3a1 1 0 1 1 0 2 1 1 0 0 1 0-2zM10.5 3a1 1 0 1 1 0 2 1 1 0 0 1 0-2zM5.5 7a1 1 0 1 1 0' +
      ' 2 1 1 0 0 1 0-2zM10.5 7a1 1 0 1 1 0 2 1 1 0 0 1 0-2zM5.5 11a1 1 0 1 1 0 2 1 1 0 0 1' +
      ' 0-2zM10.5 11a1 1 0 1 1 0 2 1 1 0 0 1 0-2z',
  },
  chart: { line: 'M2.5 2.5v11h11M4.8 10.5l2.7-3.5 2.2 2 3.5-4.5' },
  log: { line: 'M3 3.5h10M3 6.5h10M3 9.5h7M3 12.5h5' },
  format: { line: 'M3 3.5h10M5.5 6.5H13M5.5 9.5H11M3 12.5h10' },
  link: {
    line:
      'M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-.9.9M9.2 6.8a2.6 2.6 0 0' +
      ' 0-3.7 0L3.2 9.1a2.6 2.6 0 0 0 3.7 3.7l.9-.9',
  },
  menu: { line: 'M3 4.5h10M3 8h10M3 11.5h10' },
  copy: { line: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3' },
  options: {
    line: 'M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M8.5 3v3h3V3zM4.5 10v3h3v-3z',
  },
  export: { line: 'M8 9.8V2.3M5 5 8 2l3 3M2.5 10.5v3h11v-3' },
  help: {
    line:
      'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6.2 6.3C6.3 5.2' +
      ' 7 4.6 8 4.6s1.8.6 1.8 1.6c0 1.5-1.8 1.4-1.8 2.9M8 11.2v.3',
  },
  theme: { line: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z', solid: 'M8 2a6 6 0 0 1 0 12z' },
  running: {
    line: 'M8 2.5A5.5 5.5 0 0 1 13.5 8',
    faint: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11z',
  },
  left: { line: 'M10 3.5 5.5 8l4.5 4.5' },
  right: { line: 'M6 3.5 10.5 8 6 12.5' },
  clock: { line: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.5' },
} as const satisfies Record<string, Shape>;

export type IconName = keyof typeof SHAPES;

/** CSS classes of an icon that indicates work in progress. */
// eslint-disable-next-line console/literal-texts -- classes
export const SPINNING = 'spin accent';

export function Icon(props: { name: IconName; class?: string }): JSX.Element {
  const shape = (): Shape => SHAPES[props.name];
  return (
    <svg class={`icon ${props.class ?? ''}`} viewBox="0 0 16 16" aria-hidden="true">
      <Show when={shape().faint}>
        <path class="faint" d={shape().faint} />
      </Show>
      <Show when={shape().line}>
        <path d={shape().line} />
      </Show>
      <Show when={shape().solid}>
        <path class="solid" d={shape().solid} />
      </Show>
    </svg>
  );
}

/** The logo: a flat tide line over two waves. */
export function Logo(): JSX.Element {
  return (
    <svg class="icon logo-mark" viewBox="0 0 20 20" role="img" aria-label="Tidemark">
      <path class="fine" d="M2 5.5h14" />
      <path class="bold" d="M2 5.5h6.5" />
      <path class="bold" d="M1.5 12c2 0 2-2.2 4.2-2.2S8 12 10 12s2.3-2.2 4.3-2.2S16.6 12 18.5 12" />
      <path
        class="fine"
        d="M1.5 16.2c2 0 2-2.2 4.2-2.2S8 16.2 10 16.2s2.3-2.2 4.3-2.2 2.3 2.2 4.2 2.2"
      />
    </svg>
  );
}
