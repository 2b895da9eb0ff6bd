// The order in which test files start. Those with clusters wait for elections, which need CPU time,
// so they start first and about one at a time. Of the others the longest start first, so that the
// run does not end with one of them. By itself vitest starts the largest files first, and a file of
// fault scenarios is a small one.

import path from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files with clusters, in seconds on a machine of two cores. Approximate values are enough. */
const clusterFiles: Readonly<Record<string, number>> = {
  "tools/faults/scenarios.cluster": 160,
  "tools/faults/scenarios.network": 140,
  "tools/faults/networks.cut": 35,
  "tools/faults/cluster.start": 14,
  "tools/faults/replicas": 5,
};
/** Other long files, likewise. */
const longFiles: Readonly<Record<string, number>> = {
  "tools/faults/scenarios.single": 115,
  "readers/effects/writer/effects-writer.sqlite": 80,
  "tools/faults/scenarios.effects": 65,
  "readers/effects/writer/effects-writer.postgres": 60,
  "platform/embedded/nats-server.disk-full": 45,
  "commands/erase/erase.killed": 40,
  "e2e/durability/process.killed": 40,
  "docs/blocks": 40,
  "commands/npm-options": 40,
  "gateway/http/framing.one-end": 35,
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
  "platform/embedded/folder-fault": 20,
  "e2e/durability/store.power-cut": 20,
  "deploy/prometheus.queries": 20,
  "gateway/http/framing.proxies": 20,
  "commands/erase/erase": 20,
  "docs/tutorials": 20,
  openapi: 18,
  "gateway/body/slow-bodies": 18,
  "gateway/http/server.unread-answers": 18,
  "gateway/http/server.flood": 17,
  "gateway/http/server.hostile-requests": 17,
  "gateway/http/server.zstd-windows": 16,
  "gateway/intake/intake.hostile-bodies": 16,
  "readers/effects/store/sqlite": 16,
  "platform/nats/erased-messages": 16,
  "tools/usage": 16,
  "tools/load/ledger": 16,
};
/** Seconds that any other file takes. */
const secondsUsual = 3.5;

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isCluster = (file: TestSpecification): boolean => nameOf(file) in clusterFiles;
    const others = await super.sort(files.filter((file) => !isCluster(file)));
    const clusters = longestFirst(files.filter(isCluster));
    const { maxWorkers } = this.ctx.config;
    return inOrder(clusters, longestFirst(others), Math.max(1, maxWorkers - 1));
  }
}

/** When each would start if one worker ran all with clusters, and the others the rest. */
function inOrder(
  clusters: TestSpecification[],
  others: TestSpecification[],
  workersOfOthers: number,
): TestSpecification[] {
  const ordered: TestSpecification[] = [];
  let nextClusterAt = 0;
  let nextOtherAt = 0;
  while (clusters.length > 0 || others.length > 0) {
    const isClusterNext =
      others.length === 0 || (clusters.length > 0 && nextClusterAt <= nextOtherAt);
    const file = (isClusterNext ? clusters : others).shift()!;
    if (isClusterNext) nextClusterAt += secondsOf(file);
    else nextOtherAt += secondsOf(file) / workersOfOthers;
    ordered.push(file);
  }
  return ordered;
}

function longestFirst(files: TestSpecification[]): TestSpecification[] {
  return files.toSorted((left, right) => secondsOf(right) - secondsOf(left));
}

function secondsOf(file: TestSpecification): number {
  const name = nameOf(file);
  return clusterFiles[name] ?? longFiles[name] ?? secondsUsual;
}

/** `http/certificate.renewal` of the file test/gateway/http/certificate.renewal.test.ts. */
function nameOf({ moduleId }: TestSpecification): string {
  const tests = path.resolve(import.meta.dirname, "..");
  return path.relative(tests, moduleId).replace(/\.test\.ts$/, "");
}
