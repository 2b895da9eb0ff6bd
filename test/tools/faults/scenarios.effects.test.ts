// Faults of the effects and of sinks: which stored events are applied in each database.

import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { runEffectsScenario } from "../../faults/effects/run-effects-scenario.ts";
import { databasesOf } from "../../faults/effects/scenario.ts";
import { effectsScenarios } from "../../faults/effects/scenarios.ts";
import { findNatsServer, oldestNatsServer } from "../../kit/nats-server.ts";

// Alternates between the supported nats-server versions.
const servers = {
  SQLite: findNatsServer,
  PostgreSQL: oldestNatsServer,
  ClickHouse: findNatsServer,
  "Parquet files": oldestNatsServer,
};

test.each(
  effectsScenarios.flatMap((scenario) =>
    databasesOf(scenario).map((database) => ({ scenario, database })),
  ),
)("$scenario.name on $database keeps its promise", async ({ scenario, database }) => {
  const binary = servers[database]();
  const seed = randomInt(2 ** 32);
  const result = await runEffectsScenario(scenario, {
    ...{ database, form: "short", binary, natsVersion: "", seed },
  });
  expect(result.faults, result.notes.join("\n")).toEqual([]);
});
