// The posted bodies: events of about 400 bytes, the same in every run. Neighbouring events differ,
// so that no server profits from repeated bytes.

import { gzipSync } from "node:zlib";
import { uniqueMark } from "../generators/unique.ts";
import { keyOf } from "./nats.ts";

const firstMs = Date.UTC(2026, 0, 2, 3, 4, 5);
const pages = ["pricing", "docs/start", "blog/launch", "account/settings", "checkout"];
const browsers = ["Firefox", "Chrome", "Safari", "Edge"];

export function event(index: number, paddingBytes = 0): Record<string, unknown> {
  return {
    event: index % 3 === 0 ? "$pageview" : "button clicked",
    distinct_id: `user-${(index * 7_919) % 100_003}`,
    timestamp: new Date(firstMs + index * 17).toISOString(),
    properties: {
      $current_url: `https://www.example.com/${pages[index % pages.length]}?visit=${index}`,
      $browser: browsers[index % browsers.length],
      $browser_version: 100 + (index % 40),
      $os: "Linux",
      $screen_width: 1_920,
      $screen_height: 1_080,
      $session_id: `0199c0de-${String(index % 10_000).padStart(4, "0")}-7000-8000-0123456789ab`,
      $lib: "web",
      $referrer: `https://search.example.com/?q=${index}`,
      plan: index % 5 === 0 ? "pro" : "free",
      duration_seconds: (index % 977) / 10,
      ...(paddingBytes > 0 ? { text: "x".repeat(paddingBytes) } : {}),
    },
  };
}

export function singleBody(index: number, project = 0, paddingBytes = 0): Buffer {
  return Buffer.from(JSON.stringify({ api_key: keyOf(project), ...event(index, paddingBytes) }));
}

export function smallBody(): Buffer {
  const { event: name, distinct_id, timestamp, properties } = event(1);
  const { $current_url } = properties as Record<string, unknown>;
  return Buffer.from(
    JSON.stringify({
      api_key: keyOf(0),
      event: name,
      distinct_id,
      timestamp,
      properties: { $current_url },
    }),
  );
}

export function batchBody(events: number, project = 0): Buffer {
  const batch = Array.from({ length: events }, (_, index) => event(index));
  return Buffer.from(JSON.stringify({ api_key: keyOf(project), batch }));
}

/** The mark makes each request different, because a repeated large body is stored once. */
export function uniqueBatchBody(events: number): Buffer {
  const [first, ...others] = Array.from({ length: events }, (_, index) => event(index));
  return Buffer.from(
    JSON.stringify({
      api_key: keyOf(0),
      batch: [{ ...first, distinct_id: uniqueMark }, ...others],
    }),
  );
}

export function gzipped(body: Buffer): Buffer {
  return gzipSync(body);
}

export const hugeBatchEvents = 45_000;
