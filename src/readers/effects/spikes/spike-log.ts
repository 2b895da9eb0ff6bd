// Logs that a spike began or ended, after the spike is committed. Distinct ids are personal data,
// so the log does not contain a hot id. The table and the announcement do.

import type { Log } from "../../../platform/base/log.ts";
import { RateWindow } from "../../../platform/base/rate-window.ts";
import type { OutboxRow } from "../types.ts";
import type { SpikeNews } from "./announcement.ts";
import { projectSubject } from "./project-activity.ts";

/**
 * Maximum number of log lines per minute. Many ids can be hot at the same time, and a catch-up
 * finds the spikes of days.
 */
const linesAMinute = 30;

export class SpikeLog {
  readonly #log: Pick<Log, "info">;
  readonly #window: RateWindow;
  #skipped = 0;

  constructor(log: Pick<Log, "info">, monotonicMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#window = new RateWindow({ max: linesAMinute, windowMs: 60_000, monotonicMs });
  }

  /** Logs the announcements of a commit. */
  committed(outbox: readonly OutboxRow[]): void {
    for (const { json } of outbox) {
      if (this.#window.isSpent) {
        this.#skipped++;
        continue;
      }
      this.#window.spend(1);
      this.#say(JSON.parse(json) as SpikeNews);
    }
  }

  #say({ project, subject, change, started_at, ended_at, ...figures }: SpikeNews): void {
    const { peak_per_minute: peakPerMinute, baseline, threshold, events } = figures;
    const of = subject === projectSubject ? "the project" : "a distinct id";
    const times = { startedAt: started_at, ...(ended_at !== null && { endedAt: ended_at }) };
    // Skipped lines are reported with the next line, so that no timer is needed.
    const more = this.#skipped === 0 ? {} : { beforeUnsaid: this.#skipped };
    this.#skipped = 0;
    const fields = { project, of, ...times, peakPerMinute, baseline, threshold, events, ...more };
    this.#log.info(fields, `a spike ${change}`);
  }
}
