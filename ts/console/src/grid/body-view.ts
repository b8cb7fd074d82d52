/**
 * Manages the elements of the visible rows and cells. Elements that leave the view are reused for
 * rows and cells that enter it, and only differences are written. Scrolling therefore creates no
 * elements and leaves visible elements unchanged. Once scrolling stops, the elements are put into
 * display order for screen readers. This is delayed because moving elements is slow.
 */
import type { CellText } from '../model/format.js';
import { isNumeric } from '../model/types.js';
import type { Cell } from './keys.js';
import { HEAD_HEIGHT, ROW_HEIGHT, type GridLayout } from './layout.js';
import { cellId, shownCell, type GridProps } from './context.js';
import { contains, type Selection } from './selection.js';

/** Everything that determines the body's appearance. */
interface BodyPicture {
  readonly shown: Pick<GridProps, 'result' | 'zone' | 'name'>;
  readonly layout: GridLayout;
  /** Positions of the visible rows and columns, in ascending order. */
  readonly rows: readonly number[];
  readonly columns: readonly number[];
  /** Number of pixels by which rows are drawn above their positions. */
  readonly shift: number;
  readonly cell: Cell;
  readonly selection: Selection | undefined;
  /** A different object whenever a cell may show new content at the same position. */
  readonly edition: object;
}

const SCROLL_IDLE_MS = 120;

export class BodyView {
  readonly #host: HTMLElement;
  #rows: RowView[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: HTMLElement) {
    this.#host = host;
  }

  show(picture: BodyPicture): void {
    const { rows } = picture;
    this.#rows = refilled(this.#host, this.#rows, rows, () => new RowView());
    this.#rows.forEach((row, index) => row.show(rows[index] ?? 0, picture));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#arrange(), SCROLL_IDLE_MS);
  }

  #arrange(): void {
    inOrder(this.#host, this.#rows);
    for (const row of this.#rows) {
      row.arrange();
    }
  }
}

interface PositionedView {
  readonly element: HTMLElement;
  position: number;
}

/**
 * Returns one view per position. Existing views keep their positions, and unused views are assigned
 * to new ones.
 */
function refilled<View extends PositionedView>(
  host: HTMLElement,
  views: readonly View[],
  positions: readonly number[],
  create: () => View,
): View[] {
  const visible = new Set(positions);
  const reused = new Map<number, View>();
  const free: View[] = [];
  for (const view of views) {
    if (visible.has(view.position)) {
      reused.set(view.position, view);
    } else {
      free.push(view);
    }
  }
  const next = positions.map((position) => {
    const view = reused.get(position) ?? free.pop() ?? create();
    if (view.element.parentNode === null) {
      host.append(view.element);
    }
    return view;
  });
  for (const view of free) {
    view.element.remove();
  }
  return next;
}

/** Puts the elements into order, and moves only those that are out of order. */
function inOrder(
  host: HTMLElement,
  views: readonly PositionedView[],
  before: Element | null = null,
): void {
  let after = before;
  for (const { element } of views) {
    const expected = after ? after.nextElementSibling : host.firstElementChild;
    if (element !== expected) {
      host.insertBefore(element, expected);
    }
    after = element;
  }
}

class RowView {
  readonly element = document.createElement('div');
  position = -1;
  readonly #number = document.createElement('span');
  readonly #numberText = this.#number.appendChild(new Text());
  #views: CellView[] = [];
  #edition: object | undefined;
  #isSelected = false;
  #numberWidth = -1;
  #top = -1;

  constructor() {
    this.element.className = 'grid-row';
    this.element.setAttribute('role', 'row');
    this.#number.className = 'grid-number';
    this.#number.setAttribute('role', 'rowheader');
    this.element.append(this.#number);
  }

  show(position: number, picture: BodyPicture): void {
    const { layout, cell } = picture;
    const isOther = position !== this.position;
    if (isOther) {
      this.position = position;
      this.element.setAttribute('aria-rowindex', String(position + 2));
    }
    const top = HEAD_HEIGHT + position * ROW_HEIGHT - picture.shift;
    if (top !== this.#top) {
      this.#top = top;
      this.element.style.transform = `translateY(${top}px)`;
    }
    if (isOther || picture.edition !== this.#edition) {
      this.#edition = picture.edition;
      this.#numberText.data = String(layout.numberAt(position));
    }
    const width = layout.numberWidth();
    if (width !== this.#numberWidth) {
      this.#numberWidth = width;
      this.#number.style.width = `${width}px`;
    }
    const isSelected = position === cell.row;
    if (isSelected !== this.#isSelected) {
      this.#isSelected = isSelected;
      this.element.classList.toggle('selected', isSelected);
    }
    const { columns } = picture;
    this.#views = refilled(this.element, this.#views, columns, () => new CellView());
    this.#views.forEach((view, index) => view.show(position, columns[index] ?? 0, picture));
  }

  arrange(): void {
    inOrder(this.element, this.#views, this.#number);
  }
}

const NOTHING: CellText = { kind: 'plain', text: '' };

class CellView {
  readonly element = document.createElement('span');
  /** Position of the column in the grid. */
  position = -1;
  readonly #value = document.createElement('span');
  /** Text node of the cell. It is reused, because a new node would require a full layout. */
  readonly #text = this.#value.appendChild(new Text());
  #faint: HTMLElement | undefined;
  #row = -1;
  #edition: object | undefined;
  #classes = '';
  #left = -1;
  #width = -1;
  #shown = NOTHING;

  constructor() {
    this.element.setAttribute('role', 'gridcell');
    this.#value.className = 'grid-value';
    this.element.append(this.#value);
  }

  show(row: number, column: number, picture: BodyPicture): void {
    const { layout, cell } = picture;
    const isOther = row !== this.#row || column !== this.position;
    if (isOther || picture.edition !== this.#edition) {
      this.#fill(row, column, picture, isOther);
    }
    const isFocused = row === cell.row && column === cell.column;
    const isChosen = contains(picture.selection, row, column);
    const classes = this.#classesOf(column, isFocused, picture) + (isChosen ? ' chosen' : '');
    if (classes !== this.#classes) {
      this.#classes = classes;
      this.element.className = classes;
      this.element.ariaSelected = String(isChosen || isFocused);
    }
    const [left, width] = [layout.left(column), layout.width(column)];
    if (left !== this.#left) {
      this.#left = left;
      this.element.style.left = `${left}px`;
    }
    if (width !== this.#width) {
      this.#width = width;
      this.element.style.width = `${width}px`;
      this.#hint(column, layout);
    }
  }

  #fill(
    row: number,
    column: number,
    { shown, layout, edition }: BodyPicture,
    isOther: boolean,
  ): void {
    if (isOther) {
      this.element.id = cellId({ row, column }, shown.name);
      if (column !== this.position) {
        this.element.setAttribute('aria-colindex', String(column + 2));
      }
      this.#row = row;
      this.position = column;
    }
    this.#edition = edition;
    const position = { row: layout.rowAt(row), column: layout.columnAt(column) };
    const next = shownCell(shown.result, position, shown.zone);
    if (next.text !== this.#shown.text) {
      this.#text.data = next.text;
    }
    if (next.faint !== this.#shown.faint) {
      this.#showFaint(next.faint);
    }
    if (next.short !== this.#shown.short) {
      this.#value.style.paddingRight = next.short === undefined ? '' : `${next.short}ch`;
    }
    this.#shown = next;
    this.#hint(column, layout);
  }

  #showFaint(text: string | undefined): void {
    if (text === undefined || text === '') {
      this.#faint?.remove();
      this.#faint = undefined;
      return;
    }
    if (!this.#faint) {
      this.#faint = document.createElement('span');
      this.#faint.className = 'grid-faint';
      this.element.append(this.#faint);
    }
    this.#faint.textContent = text;
  }

  /** Shows the full text as a tooltip if the cell truncates it. */
  #hint(column: number, layout: GridLayout): void {
    const { text } = this.#shown;
    const chars = text.length + (this.#shown.short ?? 0);
    const title = layout.cuts(column, chars) ? text : '';
    if (this.element.title !== title) {
      this.element.title = title;
    }
  }

  #classesOf(column: number, isFocused: boolean, { shown, layout }: BodyPicture): string {
    const { kind, text } = this.#shown;
    const type = shown.result.columns[layout.columnAt(column)]?.type ?? '';
    return (
      `grid-cell is-${kind}` +
      (isNumeric(type) ? ' right' : '') +
      (layout.isFrozen(column) ? ' frozen' : '') +
      (layout.isLastFrozen(column) ? ' frozen-last' : '') +
      (isFocused ? ' focused' : '') +
      (kind === 'boolean' && text === 'false' ? ' no' : '')
    );
  }
}
