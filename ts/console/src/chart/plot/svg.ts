/** A pen that writes an SVG image. */
import type { Pen } from './pen.js';

interface State {
  fill: string;
  stroke: string;
  width: number;
  dash: readonly number[];
  alpha: number;
  font: string;
  align: CanvasTextAlign;
  baseline: CanvasTextBaseline;
  /** Number of groups to close when this state is restored. */
  groups: number;
}

const START: State = {
  fill: '#000',
  stroke: '#000',
  width: 1,
  dash: [],
  alpha: 1,
  font: '10px sans-serif',
  align: 'start',
  baseline: 'alphabetic',
  groups: 0,
};

const ANCHORS: Readonly<Record<CanvasTextAlign, string>> = {
  left: 'start',
  start: 'start',
  center: 'middle',
  right: 'end',
  end: 'end',
};

/** Vertical distance from the text's position to its baseline, as a fraction of the font size. */
const SHIFTS: Readonly<Partial<Record<CanvasTextBaseline, number>>> = {
  top: 0.8,
  middle: 0.35,
  bottom: -0.2,
};

export class SvgPen implements Pen {
  readonly #parts: string[] = [];
  readonly #measure: CanvasRenderingContext2D | null;
  readonly #stack: State[] = [];
  #state: State = { ...START };
  #path = '';
  #clips = 0;

  constructor() {
    this.#measure = document.createElement('canvas').getContext('2d');
  }

  /**
   * Returns the SVG file. `width` and `height` are in CSS pixels, and `scale` is the number of
   * device pixels per CSS pixel.
   */
  text(width: number, height: number, scale: number, title: string): string {
    const box = `0 0 ${num(width * scale)} ${num(height * scale)}`;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${num(width)}" height="${num(height)}"` +
      ` viewBox="${box}" role="img"><title>${escaped(title)}</title>\n` +
      `${this.#parts.join('\n')}\n</svg>\n`
    );
  }

  save(): void {
    this.#stack.push({ ...this.#state });
    this.#state.groups = 0;
  }

  restore(): void {
    this.#parts.push('</g>'.repeat(this.#state.groups));
    this.#state = this.#stack.pop() ?? { ...START };
  }

  translate(x: number, y: number): void {
    this.#parts.push(`<g transform="translate(${num(x)} ${num(y)})">`);
    this.#state.groups += 1;
  }

  beginPath(): void {
    this.#path = '';
  }

  closePath(): void {
    this.#path += 'Z';
  }

  moveTo(x: number, y: number): void {
    this.#path += `M${num(x)} ${num(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.#path += `L${num(x)} ${num(y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.#path += `M${num(x)} ${num(y)}h${num(width)}v${num(height)}h${num(-width)}Z`;
  }

  arc(x: number, y: number, radius: number, from: number, to: number): void {
    const point = (angle: number): string =>
      `${num(x + radius * Math.cos(angle))} ${num(y + radius * Math.sin(angle))}`;
    // An SVG arc cannot end where it begins, so a full circle needs two halves.
    const middle = (from + to) / 2;
    const move = this.#path === '' ? 'M' : 'L';
    const half = (angle: number): string => `A${num(radius)} ${num(radius)} 0 0 1 ${point(angle)}`;
    this.#path += `${move}${point(from)}${half(middle)}${half(to)}`;
  }

  clip(): void {
    this.#clips += 1;
    const id = `clip-${this.#clips}`;
    this.#parts.push(`<clipPath id="${id}"><path d="${this.#path}"/></clipPath>`);
    this.#parts.push(`<g clip-path="url(#${id})">`);
    this.#state.groups += 1;
  }

  stroke(): void {
    const { stroke, width, dash } = this.#state;
    const dashes = dash.length === 0 ? '' : ` stroke-dasharray="${dash.map(num).join(' ')}"`;
    this.#parts.push(
      `<path d="${this.#path}" fill="none" stroke="${escaped(stroke)}"` +
        ` stroke-width="${num(width)}"${dashes}${this.#alpha()}/>`,
    );
  }

  fill(): void {
    const { fill } = this.#state;
    this.#parts.push(`<path d="${this.#path}" fill="${escaped(fill)}"${this.#alpha()}/>`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.#parts.push(
      `<rect x="${num(x)}" y="${num(y)}" width="${num(width)}" height="${num(height)}"` +
        ` fill="${escaped(this.#state.fill)}"${this.#alpha()}/>`,
    );
  }

  fillText(text: string, x: number, y: number): void {
    const { fill, font, align, baseline } = this.#state;
    const [, weight = '400', size = '10', family = ''] =
      /^(?:(\d+|bold) )?([\d.]+)px (.*)$/.exec(font) ?? [];
    const down = (SHIFTS[baseline] ?? 0) * Number(size);
    this.#parts.push(
      `<text x="${num(x)}" y="${num(y + down)}" fill="${escaped(fill)}" font-size="${size}"` +
        ` font-weight="${weight}" font-family="${escaped(family)}"` +
        ` text-anchor="${ANCHORS[align]}"${this.#alpha()}>${escaped(text)}</text>`,
    );
  }

  measureText(text: string): TextMetrics {
    if (!this.#measure) {
      return { width: text.length * 7 } as TextMetrics;
    }
    this.#measure.font = this.#state.font;
    return this.#measure.measureText(text);
  }

  setLineDash(lengths: readonly number[]): void {
    this.#state.dash = [...lengths];
  }

  #alpha(): string {
    return this.#state.alpha === 1 ? '' : ` opacity="${num(this.#state.alpha)}"`;
  }

  get lineWidth(): number {
    return this.#state.width;
  }

  set lineWidth(width: number) {
    this.#state.width = width;
  }

  get strokeStyle(): string {
    return this.#state.stroke;
  }

  set strokeStyle(colour: string | CanvasGradient | CanvasPattern) {
    this.#state.stroke = typeof colour === 'string' ? colour : '';
  }

  get fillStyle(): string {
    return this.#state.fill;
  }

  set fillStyle(colour: string | CanvasGradient | CanvasPattern) {
    this.#state.fill = typeof colour === 'string' ? colour : '';
  }

  get globalAlpha(): number {
    return this.#state.alpha;
  }

  set globalAlpha(alpha: number) {
    this.#state.alpha = alpha;
  }

  get font(): string {
    return this.#state.font;
  }

  set font(font: string) {
    this.#state.font = font;
  }

  get textAlign(): CanvasTextAlign {
    return this.#state.align;
  }

  set textAlign(align: CanvasTextAlign) {
    this.#state.align = align;
  }

  get textBaseline(): CanvasTextBaseline {
    return this.#state.baseline;
  }

  set textBaseline(baseline: CanvasTextBaseline) {
    this.#state.baseline = baseline;
  }
}

function num(value: number): string {
  return String(Math.round(value * 100) / 100);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** Escapes text for XML, and replaces characters that XML does not allow. */
function escaped(text: string): string {
  const allowed = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd');
  return allowed.replace(/[&<>"]/g, (one) => ENTITIES[one] ?? one);
}
