import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { runEffectsScenario } from "../../faults/effects/run-effects-scenario.ts";
import { databasesOf } from "../../faults/effects/scenario.ts";
import { effectsScenarios } from "../../faults/effects/scenarios.ts";
import { findNatsServer, oldestNatsServer } from "../../kit/nats-server.ts";

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
)(
  "the effects scenario $scenario.name on $database breaks no promise",
  async ({ scenario, database }) => {
    const binary = servers[database]();
    const seed = randomInt(2 ** 32);
    const result = await runEffectsScenario(scenario, {
      database,
      form: "short",
      binary,
      natsVersion: "",
      seed,
    });
    expect(result.faults, result.notes.join("\n")).toEqual([]);
  },
);
