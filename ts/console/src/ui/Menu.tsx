/**
 * A menu at a window position. The arrow keys select an item. Escape closes the menu and restores
 * the focus.
 */
import { createSignal, For, onCleanup, onMount, Show, type JSX } from 'solid-js';
import { Icon, type IconName } from './icons.js';

export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly keys?: string;
  /** State of an item that can be switched on and off. */
  readonly checked?: boolean;
  /** True if a divider precedes the item. */
  readonly divider?: boolean;
  readonly run: () => void;
}

interface OpenMenu {
  readonly label: string;
  readonly x: number;
  readonly y: number;
  readonly items: readonly MenuItem[];
  readonly origin: Element | null;
}

const [menu, setMenu] = createSignal<OpenMenu>();

/** Opens a menu below and to the right of a point, in window pixels. */
export function openMenu(label: string, x: number, y: number, items: readonly MenuItem[]): void {
  setMenu({ label, x, y, items, origin: document.activeElement });
}

function closeMenu(): void {
  const { origin } = menu() ?? {};
  setMenu(undefined);
  if (origin instanceof HTMLElement) {
    origin.focus();
  }
}

/** Opens a menu below an element. */
export function openMenuBelow(label: string, element: Element, items: readonly MenuItem[]): void {
  const { left, bottom } = element.getBoundingClientRect();
  openMenu(label, left, bottom + 2, items);
}

/** Shows the open menu, if any. Rendered once per page. */
export function MenuLayer(): JSX.Element {
  return (
    <Show when={menu()} keyed>
      {(shown) => <Menu menu={shown} />}
    </Show>
  );
}

function Menu(props: { menu: OpenMenu }): JSX.Element {
  let list!: HTMLDivElement;
  const entries = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>('button')];
  const step = (by: number): void => {
    const all = entries();
    const now = all.indexOf(document.activeElement as HTMLElement);
    all.at((now + by) % all.length)?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Record<string, () => void> = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      Home: () => entries().at(0)?.focus(),
      End: () => entries().at(-1)?.focus(),
      Escape: closeMenu,
      Tab: closeMenu,
    };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      event.stopPropagation();
      move();
    }
  };
  onMount(() => {
    // If the window is too small, the menu is shifted to fit into it.
    const { width, height } = list.getBoundingClientRect();
    list.style.left = `${Math.max(0, Math.min(props.menu.x, innerWidth - width - 4))}px`;
    list.style.top = `${Math.max(0, Math.min(props.menu.y, innerHeight - height - 4))}px`;
    entries().at(0)?.focus();
    const outside = (event: PointerEvent): void => {
      if (!list.contains(event.target as Node)) {
        setMenu(undefined);
      }
    };
    document.addEventListener('pointerdown', outside, true);
    onCleanup(() => document.removeEventListener('pointerdown', outside, true));
  });
  return (
    <div ref={list} class="menu" role="menu" aria-label={props.menu.label} onKeyDown={onKeyDown}>
      <For each={props.menu.items}>
        {(item) => (
          <>
            <Show when={item.divider}>
              <hr />
            </Show>
            <button
              role={item.checked === undefined ? 'menuitem' : 'menuitemcheckbox'}
              aria-checked={item.checked}
              tabindex="-1"
              onClick={() => {
                closeMenu();
                item.run();
              }}
            >
              <Show when={item.icon}>{(icon) => <Icon name={icon()} />}</Show>
              {item.label}
              <Show when={item.keys}>
                <kbd>{item.keys}</kbd>
              </Show>
            </button>
          </>
        )}
      </For>
    </div>
  );
}
