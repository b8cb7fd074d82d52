/** Where the page begins: restores the drafts, then shows the shell. */
import { render } from 'solid-js/web';
import { App } from './shell/App.js';
import { Session } from './state/session.js';
import { Workspace } from './state/workspace.js';

const host = document.getElementById('app');
if (!host) {
  throw new Error('the page has no #app element');
}
const session = new Session(await Workspace.open());
render(() => <App session={session} />, host);
