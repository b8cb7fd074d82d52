/** Records a duration. */
export interface DurationObserver {
  observe(seconds: number): void;
}
