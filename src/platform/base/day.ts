export const dayMs = 86_400_000;

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export function isDay(text: string): boolean {
  // Date.parse reads February 30 as March 2. The comparison rejects such days.
  return /^\d{4}-\d\d-\d\d$/.test(text) && dayOrEmpty(text) === text;
}

function dayOrEmpty(text: string): string {
  const ms = Date.parse(`${text}T00:00:00.000Z`);
  return Number.isNaN(ms) ? "" : dayOf(ms);
}

const instantForm =
  /^(\d{4}-\d\d-\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d):(\d\d)))?$/;

/**
 * Parses a UTC day, or a time with a zone such as `2026-11-22T08:30:00+01:00`. Returns milliseconds
 * since the epoch, or NaN for any other text.
 */
export function instantMsOf(text: string): number {
  const parts = instantForm.exec(text);
  if (parts === null || !isDay(parts[1]!)) return Number.NaN;
  const [hour, minute, second] = [parts[2], parts[3], parts[4]].map((part) => Number(part ?? 0));
  const [zoneHour, zoneMinute] = [parts[7], parts[8]].map((part) => Number(part ?? 0));
  const isClock = hour! <= 23 && minute! <= 59 && second! <= 59;
  if (!isClock || zoneHour! > 23 || zoneMinute! > 59) return Number.NaN;
  const ms = Number((parts[5] ?? "").padEnd(3, "0").slice(0, 3));
  const clockMs = ((hour! * 60 + minute!) * 60 + second!) * 1_000 + ms;
  const zoneMs = (zoneHour! * 60 + zoneMinute!) * 60_000 * (parts[6] === "-" ? -1 : 1);
  return Date.parse(`${parts[1]}T00:00:00.000Z`) + clockMs - zoneMs;
}
