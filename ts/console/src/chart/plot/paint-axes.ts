/** Draws the axes of uPlot with another pen, for exported images. */
import type uPlot from 'uplot';
import type { Frame, Role } from './pen.js';

/** Fields that uPlot adds to an axis when it draws it. */
interface DrawnAxis {
  readonly _splits?: readonly (number | null)[];
  readonly _values?: readonly (string | null)[];
}

/** uPlot's constant for the right side. */
const RIGHT = 1;
const GAP = 8;
const LINE = 14;

export function paintAxes(self: uPlot, frame: Frame, role: Role): void {
  const { pen, box, scale } = frame;
  const right = box.left + box.width;
  const bottom = box.top + box.height;
  self.axes.forEach((axis, index) => {
    const { _splits: splits = [], _values: values = [] } = axis as DrawnAxis;
    const isAcross = index === 0;
    const isRight = !isAcross && Number(axis.side) === RIGHT;
    const hasGrid = axis.grid?.show !== false;
    pen.font = `${11 * scale}px ${role('font-ui')}`;
    splits.forEach((split, at) => {
      if (split === null) {
        return;
      }
      const [x, y] = isAcross
        ? [frame.x(split), bottom]
        : [isRight ? right : box.left, frame.y(split, axis.scale ?? 'y')];
      if (hasGrid) {
        pen.strokeStyle = role('line-soft');
        pen.lineWidth = scale;
        pen.beginPath();
        pen.moveTo(isAcross ? x : box.left, isAcross ? box.top : y);
        pen.lineTo(isAcross ? x : right, isAcross ? bottom : y);
        pen.stroke();
      }
      pen.fillStyle = role('text-faint');
      pen.textAlign = isAcross ? 'center' : isRight ? 'left' : 'right';
      pen.textBaseline = isAcross ? 'top' : 'middle';
      const lines = (values[at] ?? '').split('\n');
      lines.forEach((text, line) => {
        const aside = isAcross ? 0 : (isRight ? GAP : -GAP) * scale;
        const below = isAcross ? (GAP + line * LINE) * scale : 0;
        pen.fillText(text, x + aside, y + below);
      });
    });
  });
}
