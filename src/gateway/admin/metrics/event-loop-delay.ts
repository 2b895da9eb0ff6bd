import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Sample } from "../../../platform/metrics/table.ts";

const RESOLUTION_MS = 10;
const NANOSECONDS_PER_SECOND = 1e9;

interface EventLoopDelay {
  /** Returns p50, p99 and max of the delays since the last call, in seconds. */
  samples(): Sample[];
  close(): void;
}

export function watchEventLoopDelay(): EventLoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return {
    samples() {
      const samples = [
        { labels: { stat: "p50" }, value: delaySeconds(histogram.percentile(50)) },
        { labels: { stat: "p99" }, value: delaySeconds(histogram.percentile(99)) },
        { labels: { stat: "max" }, value: histogram.count === 0 ? 0 : delaySeconds(histogram.max) },
      ];
      histogram.reset();
      return samples;
    },
    close: () => histogram.disable(),
  };
}

/** Without the resolution: Node records whole intervals, so an idle loop would show it. */
function delaySeconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / NANOSECONDS_PER_SECOND - RESOLUTION_MS / 1_000);
}
