// How many events a project had: each of the last 60 minutes and 168 hours, and what that makes a
// usual minute. A spike's minutes are given to it cut at the threshold. Judges nothing.

const minutesKept = 60;
const hoursBack = 168;
/** The hour that is not over is one more. */
const hoursKept = hoursBack + 1;
/** No threshold is below it, so a minute with no more events need not be looked at. */
export const thresholdMin = 500;

/** A usual minute, and the most that a minute may have without being above. */
export interface Limits {
  readonly baseline: number;
  readonly threshold: number;
}

/** Runs of zeros are one number below 0; what is older than the last number is all zeros. */
interface HistoryNumbers {
  readonly since: number;
  readonly next: number;
  /** From `next - 1` back. */
  readonly minutes: readonly number[];
  /** From the hour of `next` back. */
  readonly hours: readonly number[];
}

/**
 * Minutes and hours are numbers since the epoch. Plain arrays, as long as there is something in
 * them: most projects have little, and there may be many.
 */
export class History {
  /** The first minute with data. */
  readonly since: number;
  #next: number;
  /** From `next - 1` back, and from the hour of `next` back; what is not there is 0. */
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

  /** The first minute that was not added yet. */
  get next(): number {
    return this.#next;
  }

  /** The next minute had so many events. */
  add(count: number): void {
    this.#hours[0] = (this.#hours[0] ?? 0) + count;
    this.skipTo(this.#next + 1);
    this.#minutes[0] = count;
  }

  /** All minutes before that one had no events. */
  skipTo(minute: number): void {
    if (minute <= this.#next) return;
    moveBack(this.#minutes, minute - this.#next, minutesKept);
    moveBack(this.#hours, hourOf(minute) - hourOf(this.#next), hoursKept);
    this.#next = minute;
  }

  /** Events of a minute that was added already: they are too late for anything but the hours. */
  addLate(minute: number, count: number): void {
    const back = hourOf(this.#next) - hourOf(minute);
    if (hourOf(minute) < hourOf(this.since) || back > hoursBack) return;
    while (this.#hours.length <= back) this.#hours.push(0);
    this.#hours[back]! += count;
  }

  /**
   * For the next minute. With a day of whole hours, the baseline is the mean of the same hour of
   * the seven days before (the same weekday weighs 3, the others 1, the hours beside it half of
   * that); with less, the mean of all minutes so far. Undefined before there are 60 of them.
   *
   * The threshold is max(500, baseline × m), where m is 5 times the coefficient of variation of the
   * last 60 minutes, but from 3 to 6: who is unsteady is allowed more.
   */
  limits(): Limits | undefined {
    const elapsed = this.#next - this.since;
    if (elapsed < minutesKept) return undefined;
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

  /** The weighted mean of an hour's events. */
  #sameHours(firstWholeHour: number): number {
    const hour = hourOf(this.#next);
    let [sum, weights] = [0, 0];
    for (let day = 1; day <= 7; day++) {
      for (const beside of [-1, 0, 1]) {
        const one = hour - 24 * day + beside;
        if (one < firstWholeHour || one < hour - hoursBack) continue;
        const weight = (day === 7 ? 3 : 1) * (beside === 0 ? 1 : 0.5);
        sum += weight * (this.#hours[hour - one] ?? 0);
        weights += weight;
      }
    }
    return sum / weights;
  }

  #variation(): number {
    const mean = this.#minutes.reduce((sum, count) => sum + count, 0) / minutesKept;
    if (mean === 0) return 0;
    let squares = (minutesKept - this.#minutes.length) * mean ** 2;
    for (const count of this.#minutes) squares += (count - mean) ** 2;
    return Math.sqrt(squares / minutesKept) / mean;
  }
}

function hourOf(minute: number): number {
  return Math.floor(minute / 60);
}

/** So many zeros come before the counts, of which no more than `kept` stay. */
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
