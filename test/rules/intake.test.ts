import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { bodyOf, IntakeKit, until } from "../gateway/intake/intake-kit.ts";
import { compiled, ruleOf } from "./compiled-rules.ts";

const manyRules = compiled([
  ...Array.from({ length: 96 }, (_, index) =>
    ruleOf(
      { properties: new Map([[`p${index}`, { kind: "exists" as const }]]) },
      { kind: "drop" as const },
    ),
  ),
  ruleOf({ event: ["*7"] }, { kind: "drop" }),
  ruleOf({ event: ["*8"] }, { kind: "quarantine" }),
  ruleOf({}, { kind: "cut", bytes: new Map([["padding", 10]]) }),
  ruleOf({}, { kind: "set", values: new Map([["source", "web"]]) }),
]);

test.each([1, 60, 20_000])(
  "each of %i events is stored or filtered",
  async (events) => {
    const kit = new IntakeKit({ rules: manyRules });
    const sent = kit.send(bodyOf({ name: "e", project: "a", events, padding: 60 }));
    await sent.work;
    await until(() => sent.answer !== undefined);
    const filtered = Math.floor((events + 2) / 10) + Math.floor((events + 1) / 10);
    const stored = events - filtered;
    expect(sent.answer).toBe(`stored ${stored}${filtered === 0 ? "" : `, filtered ${filtered}`}`);
    expect(kit.lines).toHaveLength(stored);
    expect(new Set(kit.placed).size).toBe(stored);
    for (const line of kit.lines.slice(0, 100)) {
      const { properties, rules } = JSON.parse(line) as Record<string, unknown>;
      expect(properties).toEqual({ padding: "x".repeat(10), source: "web" });
      expect(rules).toBe(5);
    }
  },
  60_000,
);

test("a large body with many rules is processed in many turns", async () => {
  const kit = new IntakeKit({ rules: manyRules });
  const sent = kit.send(bodyOf({ name: "e", project: "a", events: 5_000, padding: 60 }));
  await sent.work;
  await until(() => sent.answer !== undefined);
  expect(Math.max(...kit.eventsOfTurns)).toBeLessThan(512);
});

test("a turn has few events if the rules have many globs", async () => {
  const globs = Array.from({ length: 1_000 }, (_, index) => `*x${index}`);
  const kit = new IntakeKit({ rules: compiled([ruleOf({ event: globs }, { kind: "drop" })]) });
  const sent = kit.send(bodyOf({ name: "e", project: "a", events: 100, padding: 60 }));
  await sent.work;
  await until(() => sent.answer !== undefined);
  expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(32);
});

test("the message ids of a retry are those of the body as sent", async () => {
  const uuids = (name: string): Buffer => {
    const batch = Array.from({ length: 9_000 }, (_, index) => ({
      event: name,
      distinct_id: "u",
      properties: { padding: "x".repeat(60), index },
      uuid: `0199b1c2-0000-7000-8000-${String(index).padStart(12, "0")}`,
    }));
    return Buffer.from(JSON.stringify({ api_key: "key_a", batch }));
  };
  const idsOf = async (padding: number): Promise<string[]> => {
    const cut = ruleOf({}, { kind: "cut", bytes: new Map([["padding", padding]]) });
    const kit = new IntakeKit({ rules: compiled([cut]) });
    const sent = kit.send(uuids("e"));
    await sent.work;
    await until(() => sent.answer !== undefined);
    return kit.messageIds;
  };
  const ids = await idsOf(10);
  expect(ids.length).toBeGreaterThan(1);
  expect(await idsOf(10)).toEqual(ids);
  const bodyIds = new Set(
    [...ids, ...(await idsOf(20))].map((id) => id.split("-").slice(0, -3).join("-")),
  );
  expect(bodyIds.size).toBe(1);
});

test("the frames of a retry under other rules have other message ids", async () => {
  const batch = Array.from({ length: 3_000 }, (_, index) => ({
    event: index === 5 ? "a" : index === 9 ? "b" : "e",
    distinct_id: "u",
    properties: { padding: "x".repeat(300) },
    uuid: `0199b1c2-0000-7000-8000-${String(index).padStart(12, "0")}`,
  }));
  const body = (): Buffer => Buffer.from(JSON.stringify({ api_key: "key_a", batch }));
  const idsOf = async (rules?: CompiledRules): Promise<string[]> => {
    const kit = new IntakeKit(rules === undefined ? {} : { rules });
    const sent = kit.send(body());
    await sent.work;
    await until(() => sent.answer !== undefined);
    return kit.messageIds;
  };
  const dropping = (name: string, version: number) =>
    compiled([ruleOf({ event: [name] }, { kind: "drop" })], {}, { version });
  const one = await idsOf(dropping("a", 1));
  expect(one.length).toBeGreaterThan(1);
  expect(await idsOf(dropping("a", 1))).toEqual(one);
  const two = await idsOf(dropping("b", 2));
  expect(two.filter((id) => one.includes(id))).toEqual([]);
  const hash = createHash("sha256").update("live a ").update(body()).digest("base64url");
  for (const id of await idsOf()) expect(id).toMatch(new RegExp(`^${hash}-`));
});
