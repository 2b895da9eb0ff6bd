// Starts the slowest test files first. vitest starts large files first, but slow files are small.

import path from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const longFiles: Readonly<Record<string, number>> = {
  "tools/faults/scenarios.cluster": 185,
  "tools/faults/scenarios.single": 105,
  "commands/stream/cluster": 105,
  "readers/effects/writer/effects-writer.sqlite": 70,
  "commands/project.remove": 60,
  "tools/faults/scenarios.effects": 60,
  "readers/effects/writer/effects-writer.postgres": 45,
  "deploy/release.run": 45,
  "docs/blocks": 40,
  "gateway/streams/ensure.mixed-cluster": 35,
  "platform/embedded/nats-server.disk-full": 35,
  "e2e/clients/outage": 30,
  "e2e/gateway/keys.secret": 30,
  "readers/effects/store/postgres": 25,
  "platform/nats/link.refused": 25,
  "docs/tutorials": 25,
  "gateway/streams/project-shares": 25,
  "gateway/workers/supervisor.start-fault": 25,
  "commands/export/export.changes": 20,
  "e2e/gateway/outage.lost-store": 20,
  "gateway/http/server.hostile-requests": 20,
  "app/effects": 20,
  "gateway/http/framing.one-end": 20,
  "gateway/http/framing.proxies": 20,
  "tools/faults/networks.cut": 15,
  "gateway/http/server.zstd-windows": 15,
  "gateway/http/server.flood": 15,
  "readers/stream/event-streams": 15,
  "app/telemetry.readers": 15,
  "app/serve.up": 15,
  "gateway/http/server.unread-answers": 15,
  "gateway/workers/supervisor.silent-worker": 15,
  "commands/erase/erase.killed": 15,
  "app/testing.run": 15,
  "readers/consumer/consume.changes": 15,
  "gateway/body/growing-bodies.slow": 15,
  "gateway/http/listener.https": 10,
};

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const largestFirst = await super.sort(files);
    return largestFirst.toSorted((left, right) => secondsOf(right) - secondsOf(left));
  }
}

function secondsOf({ moduleId }: TestSpecification): number {
  const tests = path.resolve(import.meta.dirname, "..");
  const name = path.relative(tests, moduleId).replace(/\.test\.ts$/, "");
  return longFiles[name] ?? 0;
}
