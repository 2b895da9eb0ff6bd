import { expect, test } from "vitest";
import { IntakeKit, until } from "./intake-kit.ts";

const clientWarnings = { hasRoom: true, refused() {}, notStored() {} };

function bodyWith(project: string, firstEvent: string, events: number): Buffer {
  const others = Array(events).fill(
    JSON.stringify({ event: "e", distinct_id: "u", properties: { padding: "x".repeat(300) } }),
  );
  return Buffer.from(`{"api_key":"key_${project}","batch":[${[firstEvent, ...others].join(",")}]}`);
}

const library = (name: string): string => `{"$lib":"${name}","$lib_version":"1.2.3"}`;
const own = `{"event":"","distinct_id":"u","properties":${library("mine")}}`;
const nested = `{"event":"","properties":{"a":${library("none")}},"distinct_id":"u"}`;
const valid = `     {"event":"","properties":${library("next")},"distinct_id":"u"}`;

test("the intake reports the SDK name of a published body", async () => {
  const kit = new IntakeKit({ clientWarnings });
  const sent = kit.send(bodyWith("a", own, 10_000));
  await sent.work;
  expect(sent.answer).toBe("stored 10000");
  expect(sent.library).toBe("mine 1.2.3");
});

test("the intake reports no SDK name if a failed body lost its scanner", async () => {
  const kit = new IntakeKit({ clientWarnings });
  kit.streamOf = (_, project) => (project === "d" ? "other" : "mute");
  const stalled = Promise.withResolvers<"refused">();
  const still = new Set<string>();
  kit.outcome = (project) => {
    if (project === "d") return "stored";
    still.add(project);
    return stalled.promise;
  };
  const stuck = ["a", "b", "c"].map((project) => kit.send(bodyWith(project, nested, 20_000)));
  await until(() => still.size === 3);
  const others = Array.from({ length: 4 }, () => kit.send(bodyWith("d", valid, 10_000)));
  await Promise.all(others.map(({ work }) => work));
  expect(others.map((sent) => sent.library)).toEqual(others.map(() => "next 1.2.3"));

  stalled.resolve("refused");
  await Promise.all(stuck.map(({ work }) => work));
  expect(stuck.map(({ answer }) => answer)).toEqual(stuck.map(() => "unavailable"));
  expect(stuck.map((sent) => sent.library)).toEqual(stuck.map(() => ""));
});
