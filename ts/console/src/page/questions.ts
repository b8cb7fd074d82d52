/** The question that the user is asked before something is destroyed; a dialog shows it. */
import { createSignal } from 'solid-js';

export interface Question {
  /** The question itself: `Drop the table trades?` */
  readonly title: string;
  /** What is lost, with its size. */
  readonly text: string;
  readonly statement?: string;
  readonly keep: string;
  readonly destroy: string;
  /** A text that must be typed first; for large things. */
  readonly typed?: string;
}

interface Asked extends Question {
  readonly answer: (isSure: boolean) => void;
}

const [asked, setAsked] = createSignal<Asked>();
export { asked };

/** Resolves to whether the user is sure; closing the dialog means no. */
export function confirmed(question: Question): Promise<boolean> {
  answer(false);
  return new Promise((resolve) => setAsked({ ...question, answer: resolve }));
}

/** Ends the question with what the user said. */
export function answer(isSure: boolean): void {
  const question = asked();
  setAsked(undefined);
  question?.answer(isSure);
}
