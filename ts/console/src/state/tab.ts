/** Types of a tab and its content. */

/** A tab that follows a table or a query instead of running statements. */
export interface FollowSpec {
  /** Name of the followed table, or a name for the followed query. */
  readonly table: string;
  readonly query?: string;
  /** Number of most recent rows to show. */
  readonly rows: number;
  readonly view: 'grid' | 'chart';
}

/** A tab that shows a notebook; its draft is the notebook's text. */
export interface NotebookSpec {
  /**
   * True if the notebook's statements may run automatically. Set only after the user has run one of
   * the statements.
   */
  readonly approved: boolean;
  /** The notebook's saved version on the server, if any. */
  readonly kept?: SavedNotebook;
}

/** A notebook on the server, as of the last read or save. */
export interface SavedNotebook {
  readonly id: string;
  readonly version: number;
  readonly title: string;
  readonly text: string;
  /** The user's access: `own` includes sharing and deleting. */
  readonly access: 'own' | 'write' | 'read';
  /**
   * Link through which the notebook is read, if the notebook is not shared with the user directly.
   */
  readonly link?: string;
}

export interface Tab {
  readonly id: string;
  title: string;
  draft: string;
  /** Values of the draft's parameters, by name. */
  parameters?: Readonly<Record<string, string>>;
  follow?: FollowSpec;
  notebook?: NotebookSpec;
  /** View of the tab's result; a grid by default. */
  view?: ResultView;
  chart?: ChartSpec;
}

/** Chart settings of a tab. They apply to results with the same columns. */
export interface ChartSpec {
  readonly columns?: string;
  readonly kind?: string;
  /** Display options, keyed by name. */
  readonly options?: Readonly<Record<string, string>>;
  /** Series shown or hidden by the user. */
  readonly series?: Readonly<Record<string, boolean>>;
}

export type ResultView = 'grid' | 'chart' | 'plan' | 'log';
