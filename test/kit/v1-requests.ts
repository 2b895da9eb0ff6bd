import { randomUUID } from "node:crypto";
import type { TestGateway } from "./gateway.ts";

export const v1Path = "/i/v1/analytics/events";

interface V1Result {
  readonly result: "ok" | "warning" | "drop" | "retry";
  readonly details?: string;
  readonly hint?: string;
}

export interface V1Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: {
    readonly results?: Record<string, V1Result>;
    readonly error?: string;
    readonly error_description?: string;
  };
}

export type V1Event = Record<string, unknown> & { readonly uuid: string };

export function v1Event(event: Record<string, unknown> = {}): V1Event {
  return {
    event: "e",
    uuid: randomUUID(),
    distinct_id: "u",
    timestamp: new Date().toISOString(),
    properties: {},
    ...event,
  };
}

export function v1Body(batch: readonly unknown[], more: Record<string, unknown> = {}): string {
  return JSON.stringify({ created_at: new Date().toISOString(), batch, ...more });
}

export function v1Headers(key: string, requestId: string = randomUUID()): Record<string, string> {
  return {
    Authorization: `Bearer ${key}`,
    "Content-Type": "application/json",
    "PostHog-Request-Id": requestId,
    "PostHog-Attempt": "1",
    "PostHog-Request-Timestamp": new Date().toISOString(),
    "PostHog-Sdk-Info": "posthog-rs/1.2.3",
  };
}

export async function postV1(
  gateway: Pick<TestGateway, "url">,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string>,
): Promise<V1Answer> {
  const response = await fetch(gateway.url + v1Path, { method: "POST", body, headers });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: JSON.parse(text) as V1Answer["json"],
  };
}

/** Returns the results in the order of the response. Each is `result` or `result: details`. */
export function outcomes({ json }: V1Answer): string[] {
  return Object.values(json.results ?? {}).map(({ result, details }) =>
    details === undefined ? result : `${result}: ${details}`,
  );
}
