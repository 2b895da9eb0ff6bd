// Logs committed spikes without hot ids, because distinct ids are personal data.

import type { Log } from "../../../platform/base/log.ts";
import { RateWindow } from "../../../platform/base/rate-window.ts";
import type { OutboxRow } from "../types.ts";
import type { SpikeNews } from "./announcement.ts";
import { projectSubject } from "./project-activity.ts";

/** Many ids can be hot at the same time, and a catch-up finds the spikes of days. */
const linesAMinute = 30;

export class SpikeLog {
  readonly #log: Pick<Log, "info">;
  readonly #window: RateWindow;
  #skipped = 0;

  constructor(log: Pick<Log, "info">, monotonicMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#window = new RateWindow({ max: linesAMinute, windowMs: 60_000, monotonicMs });
  }

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
    const more = this.#skipped === 0 ? {} : { beforeUnsaid: this.#skipped };
    this.#skipped = 0;
    const fields = { project, of, ...times, peakPerMinute, baseline, threshold, events, ...more };
    this.#log.info(fields, `a spike ${change}`);
  }
}
