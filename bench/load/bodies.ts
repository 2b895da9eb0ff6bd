// The bodies of the requests: events of an exact size. The padding is a different part of a text in
// each event, so it compresses about like real properties.

import { gzipSync } from "node:zlib";
import type { Plan } from "./plan.ts";

export interface Bodies {
  /**
   * Always the same bytes for the same request number. `plainBytes` is the length before
   * compression.
   */
  of(request: number, timestampMs: number): { readonly bytes: Buffer; readonly plainBytes: number };
}

type BodyPlan = Pick<Plan, "uuidPrefix" | "key" | "batch" | "eventBytes" | "gzip">;

const words =
  "signed up viewed pricing page opened invoice team member invited dashboard filter changed export finished checkout button clicked";
const people = 1_000;
const padOffsets = 61_001;
// The compression level of browser SDKs, which is the lowest.
const gzipLevel = 1;

export const eventBytesMin = eventText({
  uuidPrefix: "-".repeat(24),
  number: 0,
  timestamp: new Date(0).toISOString(),
  pad: "",
}).length;

export function createBodies(plan: BodyPlan): Bodies {
  const padBytes = plan.eventBytes - eventBytesMin;
  const padding = paddingText(padBytes + padOffsets);
  const key = JSON.stringify(plan.key);

  function event(number: number, timestamp: string): string {
    const from = (number * 9_973) % padOffsets;
    return eventText({
      uuidPrefix: plan.uuidPrefix,
      number,
      timestamp,
      pad: padding.slice(from, from + padBytes),
    });
  }

  function text(request: number, timestamp: string): string {
    if (plan.batch === 1) return `{"api_key":${key},${event(request, timestamp).slice(1)}`;
    let events = event(request * plan.batch, timestamp);
    for (let item = 1; item < plan.batch; item++)
      events += `,${event(request * plan.batch + item, timestamp)}`;
    return `{"api_key":${key},"batch":[${events}]}`;
  }

  return {
    of(request, timestampMs) {
      const plain = Buffer.from(text(request, new Date(timestampMs).toISOString()), "utf8");
      const bytes = plan.gzip ? gzipSync(plain, { level: gzipLevel }) : plain;
      return { bytes, plainBytes: plain.length };
    },
  };
}

interface EventParts {
  readonly uuidPrefix: string;
  readonly number: number;
  readonly timestamp: string;
  readonly pad: string;
}

function eventText({ uuidPrefix, number, timestamp, pad }: EventParts): string {
  const uuid = uuidPrefix + number.toString(16).padStart(12, "0");
  const person = String(number % people).padStart(3, "0");
  return `{"event":"load test","distinct_id":"load-${person}","uuid":"${uuid}","timestamp":"${timestamp}","properties":{"load_run":"${uuidPrefix.slice(0, 8)}","padding":"${pad}"}}`;
}

function paddingText(length: number): string {
  const list = words.split(" ");
  let seed = 0x2545f491;
  let text = "";
  while (text.length < length) {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    const drawn = seed >>> 0;
    text += `${list[drawn % list.length]} ${drawn % 4 === 0 ? `${drawn.toString(36)} ` : ""}`;
  }
  return text;
}
