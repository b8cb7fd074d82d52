/** Receives how long something took. */
export interface Seconds {
  observe(seconds: number): void;
}
