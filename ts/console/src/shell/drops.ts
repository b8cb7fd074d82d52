/** Sends files dropped anywhere on the page to the import page. */
import { openPage, route } from '../page/pages.js';
import { dropped } from '../page/imports.js';

/** Starts listening for dropped files. Call the returned function to stop. */
export function takeDrops(setDropping: (isOver: boolean) => void): () => void {
  const over = (event: DragEvent): void => {
    if (event.dataTransfer?.types.includes('Files')) {
      event.preventDefault();
      setDropping(true);
    }
  };
  const leave = (event: DragEvent): void => {
    if (event.relatedTarget === null) {
      setDropping(false);
    }
  };
  const drop = (event: DragEvent): void => {
    const files = [...(event.dataTransfer?.files ?? [])];
    setDropping(false);
    if (files.length > 0) {
      event.preventDefault();
      if (route().page !== 'import') {
        openPage('import');
      }
      dropped.set(files);
    }
  };
  document.addEventListener('dragover', over);
  document.addEventListener('dragleave', leave);
  document.addEventListener('drop', drop);
  return () => {
    document.removeEventListener('dragover', over);
    document.removeEventListener('dragleave', leave);
    document.removeEventListener('drop', drop);
  };
}
