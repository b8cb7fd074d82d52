/** Drawing operations that both a canvas and the SVG writer provide. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | 'save'
  | 'restore'
  | 'translate'
  | 'beginPath'
  | 'closePath'
  | 'rect'
  | 'moveTo'
  | 'lineTo'
  | 'arc'
  | 'clip'
  | 'stroke'
  | 'fill'
  | 'fillRect'
  | 'fillText'
  | 'measureText'
  | 'setLineDash'
  | 'lineWidth'
  | 'strokeStyle'
  | 'fillStyle'
  | 'globalAlpha'
  | 'font'
  | 'textAlign'
  | 'textBaseline'
>;

/** Returns the value of a design token in the current theme. */
export type Role = (name: string) => string;

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Drawing area of a plot, in device pixels. */
export interface Frame {
  readonly pen: Pen;
  readonly box: Box;
  /** Device pixels per CSS pixel. */
  readonly scale: number;
  readonly x: (value: number) => number;
  readonly y: (value: number, scale: string) => number;
  /** Visible range of the x axis. */
  readonly from: number;
  readonly to: number;
}

/** Calls `draw` with drawing clipped to the frame. */
export function clipped({ pen, box }: Frame, draw: () => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top, box.width, box.height);
  pen.clip();
  draw();
  pen.restore();
}
