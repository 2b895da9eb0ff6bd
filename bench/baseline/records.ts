// Code that the baselines share. They store the fields that Penstock stores, but check only the
// required fields of an event.

import { randomUUID } from "node:crypto";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { keyOf, prefix, projectIdOf } from "../harness/nats.ts";

interface CaptureEvent {
  event?: unknown;
  distinct_id?: unknown;
  timestamp?: string;
  uuid?: string;
  properties?: Record<string, unknown>;
}

export interface CaptureBody extends CaptureEvent {
  api_key?: string;
  batch?: CaptureEvent[];
}

const kinds: Readonly<Record<string, string>> = {
  $pageview: "pageview",
  $screen: "screen",
  $identify: "identify",
};

export function readProjects(): ReadonlyMap<string, string> {
  const count = Number(process.env["BENCH_PROJECTS"]);
  return new Map(
    Array.from({ length: count }, (_, project) => [keyOf(project), projectIdOf(project)]),
  );
}

export async function connectToNats(): Promise<NatsConnection> {
  return await connect({ servers: process.env["BENCH_NATS_URL"] ?? "" });
}

export function liveSubject(projectId: string): string {
  return `${prefix}.live.0.${projectId}`;
}

export function storable(body: CaptureBody): CaptureEvent[] {
  return (body.batch ?? [body]).filter(
    ({ event, distinct_id }) =>
      typeof event === "string" && event !== "" && distinct_id !== undefined,
  );
}

interface Received {
  readonly projectId: string;
  readonly at: string;
  readonly ip: string;
}

export function recordOf(event: CaptureEvent, { projectId, at, ip }: Received): string {
  const name = String(event.event);
  return `${JSON.stringify({
    uuid: event.uuid ?? randomUUID(),
    project_id: projectId,
    event: name,
    distinct_id: String(event.distinct_id),
    timestamp: event.timestamp ?? at,
    received_at: at,
    ip,
    kind: kinds[name] ?? "custom",
    person_profile: true,
    historical: false,
    properties: event.properties ?? {},
  })}\n`;
}
