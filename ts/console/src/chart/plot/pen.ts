/** What is needed to draw: a canvas has it, and so has the writer of SVG files. */
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

/** The value of a design token in the theme in force. */
export type Role = (name: string) => string;

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Where a plot draws, in pixels of the device. */
export interface Frame {
  readonly pen: Pen;
  readonly box: Box;
  /** Pixels of the device for one of the page. */
  readonly scale: number;
  readonly x: (place: number) => number;
  readonly y: (value: number, scale: string) => number;
  /** The places in view. */
  readonly from: number;
  readonly to: number;
}

/** Draws inside of the frame alone. */
export function clipped({ pen, box }: Frame, draw: () => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top, box.width, box.height);
  pen.clip();
  draw();
  pen.restore();
}
