// The HTTP port of the effects with a fake reader, whose answers a test sets.

import { onTestFinished } from "vitest";
import { PortAccess } from "../../../../src/platform/base/port-access.ts";
import {
  EffectsHttp,
  type EffectsHttpOptions,
} from "../../../../src/readers/effects/http/server.ts";
import type {
  AppliedStream,
  EffectsReader,
  Person,
} from "../../../../src/readers/effects/store/port.ts";

export const ada: Person = {
  uuid: "0b5f9b62-3a4c-5d1e-8f00-123456789abc",
  mainDistinctId: "ada",
  distinctIds: ["anon-1", "ada"],
  distinctIdsTotal: 2,
  propertiesJson: '{"big":12345678901234567890.10,"plan":"pro"}',
  known: true,
  createdAtMs: Date.UTC(2026, 0, 1),
  lastSeenAtMs: Date.UTC(2026, 0, 2, 10),
  version: 3,
  mergedFrom: ["5d1e9b62-3a4c-5d1e-8f00-123456789abc"],
};

export function applied(stream: string, sequence: number): AppliedStream {
  return { stream, lane: "live", partition: 0, epoch: 1, sequence, watermarkMs: 0 };
}

export function readerOf(answers: Partial<EffectsReader>): EffectsReader {
  const none: Partial<EffectsReader> = {
    applied: async () => [],
    personByDistinctId: async () => undefined,
    personByUuid: async () => undefined,
    links: async () => undefined,
    group: async () => undefined,
    projects: async () => ["shop"],
    totals: async () => ({ persons: 0, groups: 0, openSpikes: 0, rejected: 0, incidents: 0 }),
    incidents: async () => [],
    rejected: async () => [],
  };
  return { ...none, ...answers } as EffectsReader;
}

export async function effectsHttp(
  reader: EffectsReader | undefined,
  more: Partial<EffectsHttpOptions> = {},
): Promise<string> {
  return (await openEffectsHttp(reader, more)).url;
}

export async function openEffectsHttp(
  reader: EffectsReader | undefined,
  more: Partial<EffectsHttpOptions> = {},
): Promise<{ readonly url: string; readonly http: EffectsHttp }> {
  const http = new EffectsHttp({
    access: new PortAccess({ admin: [], read: [] }),
    host: "127.0.0.1",
    reader: () => reader,
    status: async () => ({ state: "applying", reasons: [], streams: [] }),
    metrics: { contentType: "text/plain", text: async () => "penstock_effects_x 1\n" },
    log: { warn: () => {} },
    ...more,
  });
  const port = await http.listen(0);
  onTestFinished(() => http.close());
  return { url: `http://127.0.0.1:${port}`, http };
}
