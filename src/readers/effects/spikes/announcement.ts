import type { Log } from "../../../platform/base/log.ts";
import { RateWindow } from "../../../platform/base/rate-window.ts";
import type { OutboxRow, SpikeRow } from "../types.ts";
import { projectSubject } from "./project-activity.ts";

interface SpikeNews {
  readonly project: string;
  readonly subject: string;
  readonly change: "began" | "ended";
  readonly started_at: string;
  readonly ended_at: string | null;
  readonly peak_per_minute: number;
  readonly baseline: number;
  readonly threshold: number;
  readonly events: number;
}

/** Returns the announcement of a spike. If a rebuild finds the same spike, its id is the same. */
export function spikeAnnouncement(
  prefix: string,
  spike: SpikeRow,
  change: "began" | "ended",
): OutboxRow {
  const { projectId, subject, startedAtMs, endedAtMs } = spike;
  const named = encodeURIComponent(subject.toWellFormed());
  return {
    messageId: `spike/${projectId}/${named}/${startedAtMs}/${change}`,
    subject: `${prefix}.spike.${projectId}`,
    json: JSON.stringify({
      project: projectId,
      subject,
      change,
      started_at: new Date(startedAtMs).toISOString(),
      ended_at: endedAtMs === undefined ? null : new Date(endedAtMs).toISOString(),
      peak_per_minute: spike.peakPerMinute,
      baseline: spike.baseline,
      threshold: spike.threshold,
      events: spike.events,
    } satisfies SpikeNews),
  };
}

const linesAMinute = 30;

/** Logs committed spikes, but not their hot ids, because distinct ids are personal data. */
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
