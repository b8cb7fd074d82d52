/** A button that shows only an icon. Screen readers read its label. */
import { splitProps, type JSX } from 'solid-js';
import { Icon, type IconName } from './icons.js';

interface IconButtonProps extends JSX.ButtonHTMLAttributes<HTMLButtonElement> {
  readonly icon: IconName;
  readonly label: string;
}

export function IconButton(props: IconButtonProps): JSX.Element {
  const [own, others] = splitProps(props, ['icon', 'label']);
  return (
    <button class="icon-button" aria-label={own.label} {...others}>
      <Icon name={own.icon} />
    </button>
  );
}
