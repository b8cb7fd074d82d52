/** Records a duration. */
export interface Seconds {
  observe(seconds: number): void;
}
