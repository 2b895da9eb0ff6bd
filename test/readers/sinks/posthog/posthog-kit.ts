import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { PosthogTarget } from "../../../../src/readers/sinks/posthog/posthog-target.ts";
import type { TestUpstream, UpstreamEvent } from "../../../kit/posthog-upstream.ts";
import { silent } from "../../../kit/processes.ts";
import { storedLine, type TestEvent, type TestFrame } from "../../../kit/stored-events.ts";

type TargetOptions = ConstructorParameters<typeof PosthogTarget>[0];

export function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-posthog-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function targetTo(
  { url }: Pick<TestUpstream, "url">,
  { limits, ...options }: Partial<TargetOptions> = {},
): PosthogTarget {
  return new PosthogTarget({
    url,
    folder: options.folder ?? newFolder(),
    acceptRefused: false,
    log: silent,
    pid: process.pid,
    keyOf: async (project) => `key-${project}`,
    ...options,
    limits: {
      answerMsMax: 5_000,
      pauses: { msMin: 10, msMax: 50, stoppedMs: 50, rejectAfterMs: Number.POSITIVE_INFINITY },
      ...limits,
    },
  });
}

let numbers = 0;

/** Live events. Each event has its own uuid, and the properties `n` count from 0. */
export function frameOf(projectId: string, events: readonly Partial<TestEvent>[]): TestFrame {
  const receivedAtMs = Date.UTC(2026, 10, 22);
  return {
    lane: "live",
    projectId,
    messageId: `posthog-${++numbers}`,
    events: events.map((event, n) => ({
      uuid: nextUuid(),
      distinctId: "d",
      receivedAtMs,
      properties: { n },
      ...event,
    })),
  };
}

function nextUuid(): string {
  return `00000000-0000-4000-9000-${(++numbers).toString(16).padStart(12, "0")}`;
}

export function withProperties(frame: TestFrame, texts: readonly string[]): TestFrame {
  const { events, projectId, lane } = frame;
  const lines = events.map((event, at) =>
    storedLine({ ...event, properties: {} }, projectId, lane).replace(
      '"properties":{}',
      `"properties":${texts[at]}`,
    ),
  );
  return { ...frame, text: lines.join("\n") };
}

export function sentUuids(frames: readonly TestFrame[]): Record<string, string[]> {
  const all: Record<string, string[]> = {};
  for (const { projectId, lane, events } of frames) {
    const name = `key-${projectId} ${lane === "historical"}`;
    all[name] = [...(all[name] ?? []), ...events.map(({ uuid }) => uuid)];
  }
  return all;
}

export function takenUuids({ taken }: TestUpstream): Record<string, string[]> {
  const all: Record<string, string[]> = {};
  for (const { api_key: key, historical_migration: historical, batch } of taken) {
    const name = `${key} ${historical === true}`;
    all[name] = [...(all[name] ?? []), ...batch.map(({ uuid }: UpstreamEvent) => uuid)];
  }
  return all;
}
