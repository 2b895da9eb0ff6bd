import type { ProjectQuota } from "../project.ts";

/** SDKs collect events for this time before they send them. */
export const burstSecondsDefault = 10;

/** Parses the field `limits` of a stored entry. Returns a text with the error if it is invalid. */
export function parseQuota(value: unknown): ProjectQuota | string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return "limits is not an object";
  }
  const { events_per_second, bytes_per_second, burst_seconds, stream_share } = value as Record<
    string,
    unknown
  >;
  for (const [name, number] of Object.entries({
    events_per_second,
    bytes_per_second,
    burst_seconds,
    stream_share,
  })) {
    if (number !== undefined && !isPositive(number)) {
      return `limits.${name} is not a positive number`;
    }
  }
  const quota = {
    eventsPerSecond: events_per_second as number | undefined,
    bytesPerSecond: bytes_per_second as number | undefined,
    burstSeconds: (burst_seconds as number | undefined) ?? burstSecondsDefault,
    streamShare: stream_share as number | undefined,
  };
  if (!isStreamShare(quota.streamShare ?? streamShareMax)) {
    return "limits.stream_share is not a number from 1 to 100";
  }
  return quota;
}

export function quotaValue({
  eventsPerSecond,
  bytesPerSecond,
  burstSeconds,
  streamShare,
}: ProjectQuota): object {
  return {
    events_per_second: eventsPerSecond,
    bytes_per_second: bytesPerSecond,
    burst_seconds: burstSeconds,
    stream_share: streamShare,
  };
}

export function quotaText(quota: ProjectQuota | undefined): string {
  if (quota === undefined) return "";
  const { eventsPerSecond, bytesPerSecond, burstSeconds, streamShare } = quota;
  const hasRate = eventsPerSecond !== undefined || bytesPerSecond !== undefined;
  return [
    ...(eventsPerSecond === undefined ? [] : [`${eventsPerSecond} events/s`]),
    ...(bytesPerSecond === undefined ? [] : [`${bytesPerSecond} bytes/s`]),
    ...(hasRate ? [`burst ${burstSeconds} s`] : []),
    ...(streamShare === undefined ? [] : [`${streamShare} % of a stream`]),
  ].join(", ");
}

const streamShareMax = 100;

export function isStreamShare(value: number): boolean {
  return value >= 1 && value <= streamShareMax;
}

/** The check for a finite number is necessary because JSON.parse returns Infinity for 1e999. */
export function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
