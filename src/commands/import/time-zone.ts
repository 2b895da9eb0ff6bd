const minuteMs = 60_000;
const dayMs = 86_400_000;
/**
 * The time that one cached offset covers, in milliseconds. No zone changes its offset twice in a
 * quarter of an hour.
 */
const quarterMs = 15 * minuteMs;
const cachedMax = 10_000;

export class TimeZone {
  readonly #fixedMs: number | undefined;
  readonly #format: Intl.DateTimeFormat | undefined;
  /** The cached offsets, by the beginning of a quarter of an hour. */
  readonly #offsetsMs = new Map<number, number>();

  /**
   * `text` is a name or an offset, such as `Asia/Kolkata` or `+05:30`. Throws a RangeError if the
   * zone does not exist.
   */
  constructor(text: string) {
    const offset = /^([+-])(\d\d):?([0-5]\d)$/.exec(text);
    if (offset === null) {
      this.#format = new Intl.DateTimeFormat("en-US", {
        ...{ timeZone: text, calendar: "iso8601", numberingSystem: "latn", hourCycle: "h23" },
        ...{ year: "numeric", month: "numeric", day: "numeric" },
        ...{ hour: "numeric", minute: "numeric", second: "numeric" },
      });
      return;
    }
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    if (minutes > 18 * 60) throw new RangeError(`no time zone is ${text} from UTC`);
    this.#fixedMs = (offset[1] === "-" ? -minutes : minutes) * minuteMs;
  }

  /**
   * Converts a local time, given as if it were UTC. Of a time that occurs twice, the first counts.
   * A skipped time is moved forward.
   */
  utcMs(wallMs: number): number {
    const before = this.#offsetMs(wallMs - dayMs);
    for (const offset of [before, this.#offsetMs(wallMs + dayMs)])
      if (this.#offsetMs(wallMs - offset) === offset) return wallMs - offset;
    return wallMs - before;
  }

  /**
   * Returns the offset of the zone. Most changes of an offset are at a full hour, but some are a
   * minute later, as in St. John's or Gaza.
   */
  #offsetMs(ms: number): number {
    if (this.#fixedMs !== undefined) return this.#fixedMs;
    const quarter = Math.floor(ms / quarterMs);
    const offset = this.#cachedMs(quarter);
    if (offset === this.#cachedMs(quarter + 1)) return offset;
    const second = Math.floor(ms / 1_000) * 1_000;
    return this.#shownMs(second) - second;
  }

  #cachedMs(quarter: number): number {
    const known = this.#offsetsMs.get(quarter);
    if (known !== undefined) return known;
    const offset = this.#shownMs(quarter * quarterMs) - quarter * quarterMs;
    if (this.#offsetsMs.size >= cachedMax) this.#offsetsMs.clear();
    this.#offsetsMs.set(quarter, offset);
    return offset;
  }

  #shownMs(ms: number): number {
    const shown = new Map<string, number>();
    for (const { type, value } of this.#format!.formatToParts(ms)) shown.set(type, Number(value));
    const part = (name: string): number => shown.get(name) ?? 0;
    return Date.UTC(
      ...([part("year"), part("month") - 1, part("day")] as const),
      ...([part("hour"), part("minute"), part("second")] as const),
    );
  }
}
