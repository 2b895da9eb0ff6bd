// Starts the slowest test files first. vitest starts large files first, but slow files are small.

import path from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const longFiles: Readonly<Record<string, number>> = {
  "tools/faults/scenarios.cluster": 150,
  "tools/faults/scenarios.single": 90,
  "readers/effects/writer/effects-writer.sqlite": 80,
  "readers/effects/writer/effects-writer.postgres": 60,
  "tools/faults/scenarios.effects": 50,
  "platform/embedded/nats-server.disk-full": 45,
  "commands/erase/erase.killed": 40,
  "e2e/durability/process.killed": 40,
  "docs/blocks": 40,
  "commands/npm-options": 40,
  "tools/faults/networks.cut": 35,
  "readers/effects/store/postgres": 30,
  "deploy/prometheus.alerts": 30,
  "e2e/gateway/keys.secret": 30,
  "setup/setup.interrupted": 30,
  "app/effects": 25,
  "app/serve.up": 25,
  "e2e/clients/outage": 20,
  "readers/effects/store/sqlite.replace-file": 20,
  "readers/effects/writer/applier.full": 20,
  "readers/sinks/persons/event-persons": 20,
  "platform/embedded/data-lock.folder-fault": 20,
  "e2e/durability/store.power-cut": 20,
  "deploy/prometheus.queries": 20,
  "gateway/http/framing.proxies": 20,
  "gateway/http/framing.one-end": 20,
  "gateway/streams/project-shares": 20,
  "commands/erase/erase": 20,
  "docs/tutorials": 20,
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
