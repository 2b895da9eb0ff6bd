// Reads the header Retry-After of an answer: how long a client is asked to wait.

/**
 * Milliseconds, `msMax` at most; undefined where the header is absent or says nothing. It holds
 * seconds, or a date (RFC 9110, section 10.2.3).
 */
export function retryAfterMs(header: string | undefined, msMax: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), msMax);
}
