// The order in which test files begin. Files that mostly wait (for elections, deadlines, locks)
// begin first, one at a time beside those that work, so that the run does not end with them, nor
// with several clusters at once. What vitest does by itself is to take the largest files first, and
// a file of fault scenarios is a small one.

import path from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take long, in seconds on a machine of two cores. About right is enough. */
const slowFiles: Readonly<Record<string, number>> = {
  "tools/faults/scenarios.single": 170,
  "tools/faults/scenarios.cluster": 160,
  "tools/faults/scenarios.network": 150,
  "effects/writer/effects-writer.postgres": 45,
  "effects/writer/effects-writer.sqlite": 45,
  "tools/faults/scenarios.effects": 40,
  "effects/store/postgres": 30,
  openapi: 30,
  "embedded/data-lock": 35,
  "http/framing.one-end": 30,
  "gateway/keys.secret": 25,
  "docs/blocks": 40,
  "deploy/prometheus.alerts": 24,
  "clients/outage": 17,
};
const secondsOfFaults = 10;
/** Seconds that any other file takes. */
const secondsUsual = 3.5;

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files.filter((file) => secondsOf(file) === undefined));
    const slow = files.filter((file) => secondsOf(file) !== undefined);
    slow.sort((left, right) => secondsOf(right)! - secondsOf(left)!);
    const { maxWorkers } = this.ctx.config;
    return inOrder(slow, others, Math.max(1, maxWorkers - 1));
  }
}

/** By when each would begin if one worker took all that are slow, and the others the rest. */
function inOrder(
  slow: TestSpecification[],
  others: TestSpecification[],
  workersOfOthers: number,
): TestSpecification[] {
  const ordered: TestSpecification[] = [];
  let nextSlowAt = 0;
  let nextOtherAt = 0;
  while (slow.length > 0 || others.length > 0) {
    const isSlowNext = others.length === 0 || (slow.length > 0 && nextSlowAt <= nextOtherAt);
    const file = (isSlowNext ? slow : others).shift()!;
    if (isSlowNext) nextSlowAt += secondsOf(file)!;
    else nextOtherAt += secondsUsual / workersOfOthers;
    ordered.push(file);
  }
  return ordered;
}

function secondsOf({ moduleId }: TestSpecification): number | undefined {
  const tests = path.resolve(import.meta.dirname, "../test");
  const name = path.relative(tests, moduleId).replace(/\.test\.ts$/, "");
  return slowFiles[name] ?? (name.startsWith("tools/faults/") ? secondsOfFaults : undefined);
}
