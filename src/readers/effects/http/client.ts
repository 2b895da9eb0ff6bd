import { objectIn } from "../../../platform/base/json.ts";
import { totalLag } from "../streams/lag.ts";

interface StatusAnswer {
  readonly state: string;
  readonly reasons: readonly string[];
  readonly totals: {
    readonly persons: number;
    readonly groups: number;
    readonly open_spikes: number;
    readonly rejected: number;
    readonly incidents: number;
  };
  readonly streams: readonly {
    readonly lag_seconds: number | null;
    readonly lag_messages: number | null;
  }[];
}

interface ReportedStatus extends StatusAnswer {
  readonly lag: ReturnType<typeof totalLag>;
}

/** Parses a status response. Returns undefined if it is not from an effects process. */
export function reportedStatus(text: string): ReportedStatus | undefined {
  const answer = objectIn(text) as StatusAnswer | undefined;
  if (typeof answer?.state !== "string" || !Array.isArray(answer.streams)) return undefined;
  if (typeof answer.totals !== "object") return undefined;
  const lags = answer.streams.map(({ lag_messages, lag_seconds }) => {
    return { messages: lag_messages ?? undefined, seconds: lag_seconds ?? undefined };
  });
  return { ...answer, lag: totalLag(lags) };
}
