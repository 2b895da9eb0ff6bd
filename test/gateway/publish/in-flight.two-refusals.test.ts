// Two streams may answer a frame, for example streams with the same name on a leaf node and on its
// hub.

import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { liveStream, type Rig, startRig } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

async function refuseTwice(rig: Rig): Promise<void> {
  await (await jetstreamManager(rig.link.connection)).streams.delete(liveStream(rig));
  const refusal = `{"error":{"code":503,"err_code":10008},"stream":"${liveStream(rig)}","seq":0}`;
  for (let one = 0; one < 2; one++) {
    let sends = 0;
    rig.link.connection.subscribe(`${rig.settings.subjectPrefix}.live.>`, {
      callback: (_error, message) => void (++sends > 1 && message.respond(refusal)),
    });
  }
  await rig.link.connection.flush();
}

test("a frame stays unknown if only its later sends are refused", async () => {
  const rig = await startRig(server, { ackTimeoutMs: 100 });
  await refuseTwice(rig);
  expect(await rig.send("live", "one", { withinMs: 600 })).toEqual({
    outcome: "unknown",
    code: "timeout",
  });
  expect(rig.heard.failures.filter((why) => why === "refused").length).toBeGreaterThanOrEqual(2);
  await rig.close();
});
