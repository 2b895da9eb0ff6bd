import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { runImportKilled } from "../../faults/import/import-killed.ts";
import { findNatsServer } from "../../kit/nats-server.ts";

test("an import that is killed twice stores every line once", async () => {
  const seed = randomInt(2 ** 32);
  const result = await runImportKilled({
    form: "short",
    binary: findNatsServer(),
    natsVersion: "",
    seed,
  });
  expect(result.faults, `seed ${seed}\n${result.notes.join("\n")}`).toEqual([]);
});
