/** Asks the user to confirm a destructive action. A dialog shows the pending question. */
import { createSignal } from 'solid-js';

export interface Question {
  /** Title of the dialog, such as `Drop the table trades?` */
  readonly title: string;
  /** Describes the data that would be lost, and its size. */
  readonly text: string;
  readonly statement?: string;
  readonly cancel: string;
  readonly destroy: string;
  /** Text that the user must type to confirm; used for large objects. */
  readonly typed?: string;
}

interface PendingQuestion extends Question {
  readonly answer: (isSure: boolean) => void;
}

const [pendingQuestion, setPendingQuestion] = createSignal<PendingQuestion>();
export { pendingQuestion };

/** Asks a question. Resolves to true if the user confirms, and to false if the dialog is closed. */
export function confirmed(question: Question): Promise<boolean> {
  answer(false);
  return new Promise((resolve) => setPendingQuestion({ ...question, answer: resolve }));
}

/** Closes the dialog and resolves the pending question. */
export function answer(isSure: boolean): void {
  const question = pendingQuestion();
  setPendingQuestion(undefined);
  question?.answer(isSure);
}
