/** Shows the signed-in user and the sign-out button in the status bar. */
import { Show, type JSX } from 'solid-js';
import { signIn } from './state.js';
import type { Workspace } from '../state/workspace.js';
import type { Server } from '../state/server.js';
import { texts } from '../texts.js';

export function Account(props: { workspace: Workspace; server: Server }): JSX.Element {
  const user = (): string => {
    const now = signIn();
    return now.state === 'in' ? now.user : '';
  };
  const leave = async (): Promise<void> => {
    const { signOut } = await import('./sign-out.js');
    await signOut(props.workspace, props.server, user());
  };
  return (
    <Show when={user() !== ''}>
      <span class="account">{user()}</span>
      <button class="status-button" data-action="sign-out" onClick={() => void leave()}>
        {texts.signIn.signOut}
      </button>
    </Show>
  );
}
