// What a project may send, as the registry's entry says it and as a person reads it. Counting is
// done in meter.ts.

import type { ProjectLimits } from "../../base/types.ts";

/** Without a burst of its own: as long as SDKs gather events before they send them. */
export const burstSecondsDefault = 10;

/**
 * Limits, undefined for none, or what is wrong with them, in words that hold nothing of their
 * content.
 */
export type ParsedLimits =
  | { readonly ok: true; readonly limits: ProjectLimits | undefined }
  | { readonly ok: false; readonly fault: string };

/** Fields nobody knows are left to newer versions. */
export function parseLimits(value: unknown): ParsedLimits {
  if (value === undefined) return { ok: true, limits: undefined };
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
  const limits = {
    eventsPerSecond: events_per_second as number | undefined,
    bytesPerSecond: bytes_per_second as number | undefined,
    burstSeconds: (burst_seconds as number | undefined) ?? burstSecondsDefault,
  };
  return { ok: true, limits };
}

export function limitsValue({
  eventsPerSecond,
  bytesPerSecond,
  burstSeconds,
}: ProjectLimits): object {
  return {
    events_per_second: eventsPerSecond,
    bytes_per_second: bytesPerSecond,
    burst_seconds: burstSeconds,
  };
}

/** As a line for people, "" for none. */
export function limitsText(limits: ProjectLimits | undefined): string {
  if (limits === undefined) return "";
  const { eventsPerSecond, bytesPerSecond, burstSeconds } = limits;
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
