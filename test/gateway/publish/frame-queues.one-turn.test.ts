import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

test("the events of one turn are sent as one frame per project and stream", async () => {
  const rig = await startRig(server);
  const outcomes = await Promise.all([
    ...Array.from({ length: 50 }, (_, number) => rig.send("live", `{"n":${number}}`)),
    rig.send("live", '{"n":"other"}', { project: "beta" }),
    rig.send("historical", '{"n":"old"}'),
  ]);
  expect(outcomes).toEqual(Array.from({ length: 52 }, () => stored));

  const { subjectPrefix } = rig.settings;
  const live = await rig.stored("live");
  expect(live.map((frame) => [frame.subject, frame.lines.length])).toEqual([
    [`${subjectPrefix}.live.0.alpha`, 50],
    [`${subjectPrefix}.live.0.beta`, 1],
  ]);
  expect(live[0]?.lines).toEqual(Array.from({ length: 50 }, (_, number) => `{"n":${number}}`));
  const historical = await rig.stored("historical");
  expect(historical.map((frame) => frame.lines)).toEqual([['{"n":"old"}']]);
  expect(rig.heard).toEqual({
    framesSent: 3,
    framesAcked: 3,
    retries: 0,
    batches: [],
    duplicates: 0,
    failures: [],
    regression: [],
  });

  const [first] = live;
  expect(first?.messageId).toMatch(/^process\d{6}-[0-9a-z]+$/);
  expect(first?.header("Penstock-Events")).toBe("50");
  expect(first?.header("Penstock-Schema")).toBe("1");
  expect(first?.header("Content-Type")).toBe("application/x-ndjson");
  expect(new Set([...live, ...historical].map((frame) => frame.messageId)).size).toBe(3);
  await rig.close();
});
