// Counts the events of a project in each of the last 60 minutes and 168 hours. For the minutes of a
// spike, each count is limited to the threshold.

const minutesMax = 60;
const hoursBack = 168;
const hoursMax = hoursBack + 1;
export const thresholdMin = 500;

export interface Limits {
  readonly baseline: number;
  readonly threshold: number;
}

/**
 * The stored form of the counts. A negative number stands for that many zeros. Counts that are
 * missing at the end are 0.
 */
interface HistoryNumbers {
  readonly since: number;
  readonly next: number;
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
}

export class History {
  readonly since: number;
  #next: number;
  #minutes: number[] = [];
  #hours: number[] = [];

  constructor(since: number) {
    this.since = since;
    this.#next = since;
  }

  static from({ since, next, minutes, hours }: HistoryNumbers): History {
    const history = new History(since);
    history.#next = next;
    history.#minutes = unpacked(minutes);
    history.#hours = unpacked(hours);
    return history;
  }

  get next(): number {
    return this.#next;
  }

  add(count: number): void {
    this.#hours[0] = (this.#hours[0] ?? 0) + count;
    this.skipTo(this.#next + 1);
    this.#minutes[0] = count;
  }

  skipTo(minute: number): void {
    if (minute <= this.#next) return;
    moveBack(this.#minutes, minute - this.#next, minutesMax);
    moveBack(this.#hours, hourOf(minute) - hourOf(this.#next), hoursMax);
    this.#next = minute;
  }

  /** Adds events of a minute that is already closed. Only the count of the hour changes. */
  addLate(minute: number, count: number): void {
    const back = hourOf(this.#next) - hourOf(minute);
    if (hourOf(minute) < hourOf(this.since) || back > hoursBack) return;
    while (this.#hours.length <= back) this.#hours.push(0);
    this.#hours[back]! += count;
  }

  /**
   * Returns the baseline and the threshold. Returns undefined if the history is shorter than 60
   * minutes.
   *
   * The baseline is the weighted mean of the same hour on the seven previous days. The same weekday
   * has three times the weight. The hours before and after have half the weight. If no previous day
   * is complete, the baseline is the mean of all minutes.
   *
   * The threshold is max(500, baseline × m). The factor m is 5 times the coefficient of variation
   * of the last 60 minutes. It is at least 3 and at most 6.
   */
  limits(): Limits | undefined {
    const elapsed = this.#next - this.since;
    if (elapsed < minutesMax) return undefined;
    const firstWholeHour = Math.ceil(this.since / 60);
    const baseline =
      hourOf(this.#next) - firstWholeHour < 24
        ? this.#hours.reduce((sum, count) => sum + count, 0) / elapsed
        : this.#sameHours(firstWholeHour) / 60;
    const multiple = Math.min(6, Math.max(3, 5 * this.#variation()));
    return {
      baseline: Math.round(100 * baseline) / 100,
      threshold: Math.ceil(Math.max(thresholdMin, baseline * multiple)),
    };
  }

  numbers(): HistoryNumbers {
    const { since } = this;
    return { since, next: this.#next, minutes: packed(this.#minutes), hours: packed(this.#hours) };
  }

  #sameHours(firstWholeHour: number): number {
    const hour = hourOf(this.#next);
    let [sum, weights] = [0, 0];
    for (let day = 1; day <= 7; day++) {
      for (const neighbour of [-1, 0, 1]) {
        const one = hour - 24 * day + neighbour;
        if (one < firstWholeHour || one < hour - hoursBack) continue;
        const weight = (day === 7 ? 3 : 1) * (neighbour === 0 ? 1 : 0.5);
        sum += weight * (this.#hours[hour - one] ?? 0);
        weights += weight;
      }
    }
    return sum / weights;
  }

  #variation(): number {
    const mean = this.#minutes.reduce((sum, count) => sum + count, 0) / minutesMax;
    if (mean === 0) return 0;
    let squares = (minutesMax - this.#minutes.length) * mean ** 2;
    for (const count of this.#minutes) squares += (count - mean) ** 2;
    return Math.sqrt(squares / minutesMax) / mean;
  }
}

function hourOf(minute: number): number {
  return Math.floor(minute / 60);
}

function moveBack(counts: number[], by: number, kept: number): void {
  if (by >= kept) counts.length = 0;
  if (counts.length === 0) return;
  for (let zero = 0; zero < by; zero++) counts.unshift(0);
  if (counts.length > kept) counts.length = kept;
}

function packed(counts: readonly number[]): number[] {
  const numbers: number[] = [];
  let zeros = 0;
  for (const count of counts) {
    if (count === 0) {
      zeros++;
      continue;
    }
    if (zeros > 0) numbers.push(-zeros);
    zeros = 0;
    numbers.push(count);
  }
  return numbers;
}

function unpacked(numbers: readonly number[]): number[] {
  return numbers.flatMap((one) => (one < 0 ? new Array<number>(-one).fill(0) : [one]));
}
