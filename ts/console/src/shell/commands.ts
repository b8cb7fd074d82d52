/** Builds the entries of the command palette: commands, tables, and queries from the log. */
import { KIND_ICONS, KIND_LABELS, type TableEntry } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { approximate } from '../model/format.js';
import type { Session } from '../state/session.js';
import type { LogEntry } from '../state/history.js';
import type { IconName } from '../ui/icons.js';
import { openPage } from '../page/pages.js';
import { exportTabs, importTabs } from './tab-menu.js';
import { withNotebooks } from '../notebook/load.js';
import { nextTheme, setTheme, THEME_NAMES } from '../ui/theme.js';
import { editor } from '../state/editor.js';
import { copyLink } from './share.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface Command {
  readonly group: 'tables' | 'commands' | 'follow' | 'log';
  readonly icon: IconName;
  readonly name: string;
  readonly hint?: string;
  readonly keys?: string;
  readonly run: () => void;
}

export function commandsOf(session: Session, help: () => void): Command[] {
  const tables = session.schema.known;
  return [
    ...tables.map((table) => tableCommand(session, table)),
    ...namedCommands(session, help),
    ...tables
      .filter(({ kind }) => kind !== 'view')
      .map(({ name }): Command => ({
        group: 'follow',
        icon: 'follow',
        name: fill(texts.common.followTable, { table: name }),
        run: () => session.tabs.follow(name),
      })),
    ...logged(session),
  ];
}

function tableCommand(session: Session, { name, kind, rows }: TableEntry): Command {
  return {
    group: 'tables',
    icon: KIND_ICONS[kind],
    name,
    hint:
      rows === undefined
        ? KIND_LABELS[kind]
        : fill(texts.common.rowCount, { rows: approximate(rows) }),
    run: () => session.statements.preview(`SELECT * FROM ${quoted(name)} LIMIT 1000`),
  };
}

function namedCommands(session: Session, help: () => void): Command[] {
  const { workspace } = session;
  const command = (icon: IconName, name: string, keys: string, run: () => void): Command => ({
    group: 'commands',
    icon,
    name,
    ...(keys === '' ? {} : { keys }),
    run,
  });
  return [
    command('play', texts.palette.runStatement, 'Ctrl+Enter', () => void session.statements.run()),
    command(
      'play',
      texts.palette.runAllStatements,
      'Ctrl+Shift+Enter',
      () => void session.statements.runAll(),
    ),
    command('stop', texts.palette.cancelRunningQuery, 'Alt+K', () => session.statements.cancel()),
    command('format', texts.palette.formatTab, 'Alt+Shift+F', () => editor()?.format()),
    command('link', texts.palette.copyLinkStatement, 'Alt+L', () => copyLink(workspace, false)),
    command('link', texts.palette.copyLinkTab, 'Alt+Shift+L', () => copyLink(workspace, true)),
    command('plus', texts.common.newTab, 'Alt+T', () => {
      workspace.add();
      editor()?.focus();
    }),
    command('close', texts.common.closeTab, 'Alt+W', () => session.tabs.close(workspace.active())),
    command('refresh', texts.palette.reopenLastClosedTab, 'Alt+Shift+T', () =>
      session.tabs.reopen(),
    ),
    command('notebook', texts.common.newNotebook, '', () =>
      withNotebooks((all) => all.create(workspace)),
    ),
    command('notebook', texts.common.newDashboard, '', () =>
      withNotebooks((all) => all.createDashboard(workspace)),
    ),
    command('notebook', texts.common.openNotebookFile, '', () =>
      withNotebooks((all) => all.open(workspace)),
    ),
    command('notebook', texts.common.notebookFromLog, '', () =>
      withNotebooks((all) => all.fromLog(workspace)),
    ),
    command('export', texts.common.exportAllTabs, '', () => exportTabs(session)),
    command('plus', texts.common.importTabs, '', () => importTabs(session)),
    command('refresh', texts.common.refreshSchema, '', () => void session.schema.refresh()),
    command('grid', texts.palette.showGrid, 'Alt+1', () => workspace.setView('grid')),
    command('chart', texts.palette.showChart, 'Alt+2', () => workspace.setView('chart')),
    command('plan', texts.common.showQueryPlan, 'Alt+E', () => session.statements.explain()),
    command('log', texts.palette.showQueryLog, 'Alt+4', () => workspace.setView('log')),
    command('tables', texts.palette.openTablesIngestion, '', () => openPage('tables')),
    command('import', texts.common.importFiles, '', () => openPage('import')),
    command('queries', texts.palette.openRunningQueries, '', () => openPage('queries')),
    command('clock', texts.palette.openBackgroundJobs, '', () => openPage('jobs')),
    ...(session.server.storesNotebooks
      ? [command('notebook', texts.palette.openNotebooks, '', () => openPage('notebooks'))]
      : []),
    ...(session.server.listsUsers()
      ? [command('access', texts.palette.openUsersPermissions, '', () => openPage('access'))]
      : []),
    command('sql', texts.palette.openSqlWorkspace, '', () => openPage('sql')),
    command('theme', fill(texts.palette.switchTheme, { theme: THEME_NAMES[nextTheme()] }), '', () =>
      setTheme(nextTheme()),
    ),
    command('help', texts.palette.showAllShortcuts, '?', help),
  ];
}

/** Returns each logged query once, with the time of its last run. */
function logged(session: Session): Command[] {
  const seen = new Map<string, LogEntry>();
  for (const entry of session.workspace.log()) {
    const { text } = entry.run.statement;
    seen.set(text, seen.get(text) ?? entry);
  }
  return [...seen].map(([text, { at }]) => ({
    group: 'log',
    icon: 'log',
    name: text.replace(/\s+/g, ' '),
    hint: at.toTimeString().slice(0, 8),
    run: () => session.tabs.edit(text),
  }));
}
