import { expect, test } from "vitest";
import { withAskedLag } from "../../../../src/readers/effects/http/shapes.ts";
import { applied } from "./reader-kit.ts";

const ofStream = (lastSequence: number, lagSeconds: number) => [
  { ...applied("PENSTOCK_LIVE_0", 7), lastSequence, lagSeconds },
];
const estimated = { state: "applying", reasons: [], streams: ofStream(8, 3_600) };

test("the status shows the lag that NATS reports instead of the estimate", async () => {
  const asked = ofStream(12, 0.5);
  expect(await withAskedLag(estimated, async () => asked)).toEqual({
    ...estimated,
    streams: asked,
  });
});

test("the status shows the estimated lag if NATS reports none", async () => {
  const fails = () => Promise.reject(new Error("no answer"));
  const isSilent = () => new Promise<never>(() => {});
  for (const ask of [fails, isSilent, undefined])
    expect(await withAskedLag(estimated, ask)).toEqual(estimated);
});
