// What a project may send, as the registry's entry says it and as a person reads it. Counting is
// done in meter.ts.

import type { ProjectQuota } from "../../base/types.ts";

/** Without a burst of its own: as long as SDKs gather events before they send them. */
export const burstSecondsDefault = 10;

/**
 * A quota, undefined for none, or what is wrong with it, in words that hold nothing of its content.
 */
export type ParsedQuota =
  | { readonly ok: true; readonly quota: ProjectQuota | undefined }
  | { readonly ok: false; readonly fault: string };

/**
 * `value`: the field `limits` of an entry, which has this name in what is stored. Fields nobody
 * knows are left to newer versions.
 */
export function parseQuota(value: unknown): ParsedQuota {
  if (value === undefined) return { ok: true, quota: undefined };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ok: false, fault: "limits is not an object" };
  }
  const { events_per_second, bytes_per_second, burst_seconds } = value as Record<string, unknown>;
  for (const [name, number] of Object.entries({
    events_per_second,
    bytes_per_second,
    burst_seconds,
  })) {
    if (number !== undefined && !isPositive(number)) {
      return { ok: false, fault: `limits.${name} is not a positive number` };
    }
  }
  const quota = {
    eventsPerSecond: events_per_second as number | undefined,
    bytesPerSecond: bytes_per_second as number | undefined,
    burstSeconds: (burst_seconds as number | undefined) ?? burstSecondsDefault,
  };
  return { ok: true, quota };
}

export function quotaValue({
  eventsPerSecond,
  bytesPerSecond,
  burstSeconds,
}: ProjectQuota): object {
  return {
    events_per_second: eventsPerSecond,
    bytes_per_second: bytesPerSecond,
    burst_seconds: burstSeconds,
  };
}

/** As a line for people, "" for none. */
export function quotaText(quota: ProjectQuota | undefined): string {
  if (quota === undefined) return "";
  const { eventsPerSecond, bytesPerSecond, burstSeconds } = quota;
  return [
    ...(eventsPerSecond === undefined ? [] : [`${eventsPerSecond} events/s`]),
    ...(bytesPerSecond === undefined ? [] : [`${bytesPerSecond} bytes/s`]),
    `burst ${burstSeconds} s`,
  ].join(", ");
}

/** JSON can hold 1e999, which is read as Infinity. */
export function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
