/** Draws one plot per series. Each plot has its own axes, and all plots share one time range. */
import { createMemo, createUniqueId, For, type JSX } from 'solid-js';
import { Canvas, type CanvasProps } from './Canvas.js';
import type { Picture } from './files.js';

interface Panel {
  readonly host: HTMLElement;
  readonly picture: Picture;
}

export function SmallMultiples(props: Omit<CanvasProps, 'syncKey'>): JSX.Element {
  let host!: HTMLDivElement;
  const syncKey = createUniqueId();
  const panels = new Map<number, Panel>();
  const indexes = createMemo(() => props.shown.flatMap((isShown, index) => (isShown ? index : [])));
  const picture: Picture = {
    paint: (pen) => {
      for (const index of indexes()) {
        const panel = panels.get(index);
        if (panel) {
          const { offsetLeft, offsetTop } = panel.host;
          pen.save();
          pen.translate(offsetLeft * devicePixelRatio, offsetTop * devicePixelRatio);
          panel.picture.paint(pen);
          pen.restore();
        }
      }
    },
    size: () => ({ width: host.scrollWidth, height: host.scrollHeight }),
  };
  return (
    <div class="plots" ref={host}>
      <For each={indexes()}>
        {(index) => {
          let panel!: HTMLDivElement;
          const only = createMemo(() => props.shown.map((_isShown, at) => at === index));
          return (
            <div class="plot-panel" ref={panel}>
              <Canvas
                {...props}
                shown={only()}
                second={[]}
                syncKey={syncKey}
                onPicture={(painted) => {
                  panels.set(index, { host: panel, picture: painted });
                  props.onPicture(picture);
                }}
              />
            </div>
          );
        }}
      </For>
    </div>
  );
}
