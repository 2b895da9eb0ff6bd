import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { RejectedStreams } from "../../../src/gateway/quarantine/rejected-streams.ts";
import { connectNats } from "../../../src/platform/nats/link.ts";
import { until } from "../../kit/gateway.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { recordingLog } from "../../kit/publisher-rig.ts";

const settings = {
  subjectPrefix: "penstock",
  partitions: 1,
  replicas: 1,
  rejectedBytes: 2_097_152,
  rejectedAgeMax: 60_000,
};

test("a gateway that may not read the limits of `stream set` creates the stream, and keeps its limits", async () => {
  const denied = 'publish: { deny: "$JS.API.STREAM.MSG.GET.KV_penstock_limits" }';
  const users = `{ user: a, password: p }, { user: g, password: p, permissions: { ${denied} } }`;
  const server = await startNatsServer({ extraConfig: `authorization { users: [${users}] }` });
  onTestFinished(() => server.remove());
  const operator = await connect({ servers: server.url, user: "a", pass: "p" });
  onTestFinished(() => operator.close());
  const natsUrl = server.url.replace("://", "://g:p@");
  const log: string[] = [];
  const link = await connectNats({ access: { natsUrl }, log: recordingLog([]) });
  onTestFinished(() => link.close());
  const check = async (rejectedBytes: number) => {
    const own = { ...settings, rejectedBytes };
    const streams = new RejectedStreams({ link, settings: own, log: recordingLog(log) });
    onTestFinished(() => streams.close());
    await until(() => streams.sizes().length === 1 || log.some((one) => one.includes("lost")));
    return streams.sizes();
  };
  expect(await check(2_097_152)).toMatchObject([{ bytesMax: 2_097_152 }]);
  expect(await check(4_194_304)).toMatchObject([{ bytesMax: 2_097_152 }]);
  const manager = await jetstreamManager(operator);
  expect((await manager.streams.info("PENSTOCK_REJECTED_0")).config.max_bytes).toBe(2_097_152);
  expect(log.join()).not.toContain("lost");
});
