import { expect, test } from "vitest";
import { RegistryKeys } from "../../../../src/readers/sinks/posthog/project-keys.ts";

test("the PostHog sink uses cached keys while the registry does not respond", async () => {
  let nowMs = 0;
  let asked = 0;
  let registry: ReadonlyMap<string, string> | undefined;
  const ask = async () => {
    asked++;
    if (registry === undefined) throw new Error("away");
    return registry;
  };
  const keys = new RegistryKeys(ask, () => nowMs);
  await expect(keys.keyOf("shop")).rejects.toThrow("away");
  registry = new Map([["shop", "first"]]);
  expect(await keys.keyOf("shop")).toBe("first");
  expect(await keys.keyOf("blog")).toBeUndefined();
  expect(asked).toBe(2);

  registry = undefined;
  nowMs += 30_001;
  expect(await Promise.all([keys.keyOf("shop"), keys.keyOf("shop")])).toEqual(["first", "first"]);
  expect(await keys.keyOf("shop")).toBe("first");
  expect(asked).toBe(3);
  await expect(keys.keyOf("blog")).rejects.toThrow("away");

  registry = new Map([["shop", "second"]]);
  nowMs += 30_001;
  expect(await keys.keyOf("shop")).toBe("second");
});
