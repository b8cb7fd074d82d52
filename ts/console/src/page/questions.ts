/** The confirmation that the user is asked for before something is destroyed; a dialog shows it. */
import { createSignal } from 'solid-js';

export interface Question {
  /** The question: `Drop the table trades?` */
  readonly title: string;
  /** What will be lost, with its size. */
  readonly text: string;
  readonly statement?: string;
  readonly keep: string;
  readonly destroy: string;
  /** Text that must be typed first; for large objects. */
  readonly typed?: string;
}

interface Asked extends Question {
  readonly answer: (isSure: boolean) => void;
}

const [asked, setAsked] = createSignal<Asked>();
export { asked };

/** Resolves to whether the user confirmed; closing the dialog means no. */
export function confirmed(question: Question): Promise<boolean> {
  answer(false);
  return new Promise((resolve) => setAsked({ ...question, answer: resolve }));
}

/** Closes the question with the user's answer. */
export function answer(isSure: boolean): void {
  const question = asked();
  setAsked(undefined);
  question?.answer(isSure);
}
