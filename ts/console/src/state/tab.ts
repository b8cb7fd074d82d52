/** Type of a tab and its content. */

/** A tab that follows a table or a query instead of running statements. */
export interface FollowSpec {
  /** The table, or the name of the query. */
  readonly table: string;
  readonly query?: string;
  /** Number of last rows to show. */
  readonly rows: number;
  readonly view: 'grid' | 'chart';
}

/** A tab that shows a notebook; its draft is the notebook's text. */
export interface NotebookSpec {
  /**
   * Whether the notebook's statements may run by themselves; true only after the user has run one
   * of them.
   */
  readonly approved: boolean;
  /** Its saved version on the server, if any. */
  readonly kept?: SavedNotebook;
}

/** A notebook on the server, as it was when last read or saved. */
export interface SavedNotebook {
  readonly id: string;
  readonly version: number;
  readonly title: string;
  readonly text: string;
  /** The user's access: `own` includes sharing and deleting. */
  readonly access: 'own' | 'write' | 'read';
  /** Link through which the notebook is read, if it is not shared with the user directly. */
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

/** Chart settings of a tab; they apply to results with the same columns. */
export interface ChartSpec {
  readonly columns?: string;
  readonly kind?: string;
  /** Display options, keyed by name. */
  readonly options?: Readonly<Record<string, string>>;
  /** Series shown or hidden by the user. */
  readonly series?: Readonly<Record<string, boolean>>;
}

export type ResultView = 'grid' | 'chart' | 'plan' | 'log';
