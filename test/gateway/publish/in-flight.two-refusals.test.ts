// Two subscribers may both answer a frame's subject, such as a leaf node's stream and its hub's of
// the same name.

import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { liveStream, type Rig, startRig } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

/**
 * Two subscribers replace the stream. They refuse each send except the first, which they do not
 * answer.
 */
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

test("a send without an answer may be stored, however often the next one is refused", async () => {
  const rig = await startRig(server, { ackTimeoutMs: 100 });
  await refuseTwice(rig);
  expect(await rig.send("live", "one", { withinMs: 600 })).toEqual({
    outcome: "unknown",
    code: "timeout",
  });
  expect(rig.heard.failures.filter((why) => why === "refused").length).toBeGreaterThanOrEqual(2);
  await rig.close();
});
