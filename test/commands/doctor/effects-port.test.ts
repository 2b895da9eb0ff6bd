import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { Finding } from "../../../src/commands/doctor/finding.ts";
import { checkEffectsPort } from "../../../src/commands/doctor/ports.ts";
import type { ProcessStatus } from "../../../src/readers/effects/http/shapes.ts";
import { applied, effectsHttp, readerOf } from "../../readers/effects/http/reader-kit.ts";

const totals = { persons: 3, groups: 1, openSpikes: 0, rejected: 2, incidents: 1 };
const reader = readerOf({ totals: async () => totals });

const mine = {
  nats: "nats://127.0.0.1:1",
  subject_prefix: "penstock",
  data_folder: "/mine",
  stream_created: null,
};
const ofSettings = async () => mine;

async function found(status: Partial<ProcessStatus>, of = reader): Promise<Finding> {
  const whole = { state: "applying", reasons: [], streams: [], ...status };
  const base = await effectsHttp(of, { status: async () => whole, instance: mine });
  return await checkEffectsPort(
    { host: "127.0.0.1", port: Number(new URL(base).port), timeoutMs: 1_500 },
    ofSettings,
  );
}

function behind(lastSequence: number | undefined, lagSeconds: number | undefined) {
  return { streams: [{ ...applied("PENSTOCK_LIVE_0", 7), lastSequence, lagSeconds }] };
}

test("doctor reports the state, lag, incidents and rejections of an effects process", async () => {
  expect(await found(behind(9, 1))).toMatchObject({
    check: "effects port",
    level: "ok",
    found: expect.stringContaining(": applying, lag 2 messages, 1 incident, 2 rejected"),
  });
});

test("doctor warns if an effects process lags or does not know its lag", async () => {
  expect(await found(behind(9, 61))).toMatchObject({
    level: "warn",
    found: expect.stringContaining("the oldest is 61 s old"),
  });
  expect(await found(behind(undefined, undefined))).toMatchObject({
    level: "warn",
    found: expect.stringContaining("its lag is unknown"),
  });
});

test("doctor fails if an effects process is not ready", async () => {
  const stopped = { state: "hindered", reasons: ["5 events left PENSTOCK_LIVE_0 unread"] };
  expect(await found(stopped)).toMatchObject({
    level: "fail",
    found: expect.stringContaining("5 events left PENSTOCK_LIVE_0 unread"),
  });
});

test("doctor fails if the effects process belongs to another installation", async () => {
  const others = [
    { ...mine, nats: "nats://127.0.0.1:2", data_folder: "/other" },
    { ...mine, subject_prefix: "staging" },
    { ...mine, nats: null, data_folder: "/other" },
  ];
  for (const instance of others) {
    const base = await effectsHttp(reader, { instance });
    const question = { host: "127.0.0.1", port: Number(new URL(base).port), timeoutMs: 1_500 };
    const { level, found, fix } = await checkEffectsPort(question, ofSettings);
    expect(level).toBe("fail");
    expect(found).toContain("another installation");
    expect(found).toContain(instance.data_folder);
    expect(fix).toContain("PENSTOCK_EFFECTS_PORT");
  }
});

test("doctor fails if another program uses the effects port", async () => {
  const stranger = createServer((_, answer) => answer.end("hello")).listen(0, "127.0.0.1");
  await once(stranger, "listening");
  onTestFinished(() => void stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const question = { host: "127.0.0.1", port, timeoutMs: 1_500 };
  expect(await checkEffectsPort(question, ofSettings)).toMatchObject({
    level: "fail",
    fix: expect.stringContaining("PENSTOCK_EFFECTS_PORT"),
  });
  stranger.close();
  stranger.closeAllConnections();
  await once(stranger, "close");
  expect(await checkEffectsPort(question, ofSettings)).toMatchObject({
    level: "ok",
    found: `${port} is free`,
  });
});
