/** The question that the user must confirm before a destructive action; a dialog shows it. */
import { createSignal } from 'solid-js';

export interface Question {
  /** The question: `Drop the table trades?` */
  readonly title: string;
  /** What the user would lose, with its size. */
  readonly text: string;
  readonly statement?: string;
  readonly cancel: string;
  readonly destroy: string;
  /** Text that the user must type first; used for large objects. */
  readonly typed?: string;
}

interface PendingQuestion extends Question {
  readonly answer: (isSure: boolean) => void;
}

const [pendingQuestion, setPendingQuestion] = createSignal<PendingQuestion>();
export { pendingQuestion };

/** Resolves to true if the user confirmed; closing the dialog counts as no. */
export function confirmed(question: Question): Promise<boolean> {
  answer(false);
  return new Promise((resolve) => setPendingQuestion({ ...question, answer: resolve }));
}

/** Closes the question with the user's answer. */
export function answer(isSure: boolean): void {
  const question = pendingQuestion();
  setPendingQuestion(undefined);
  question?.answer(isSure);
}
