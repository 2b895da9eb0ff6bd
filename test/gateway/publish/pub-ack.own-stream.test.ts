import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, liveStream, type Rig, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile({ maxFileStore: 8 * 1_073_741_824 });

function replyWith(rig: Rig, reply: (times: number) => string): void {
  let times = 0;
  rig.link.connection.subscribe(`${rig.settings.subjectPrefix}.live.>`, {
    callback: (_error, message) => void message.respond(reply(++times)),
  });
}

async function withoutStream(rig: Rig): Promise<void> {
  await (await jetstreamManager(rig.link.connection)).streams.delete(liveStream(rig));
}

const noAcks: [name: string, reply: string, failure: string][] = [
  [
    "staged and not stored, from nats-server 2.10",
    '{"stream":"$","seq":0,"duplicate":true}',
    "in_flight",
  ],
  ["sequence 0", '{"stream":"$","seq":0}', "in_flight"],
  [
    "a message id in process, as of 2.11",
    '{"error":{"code":409,"err_code":10158},"stream":"$","seq":0}',
    "in_flight",
  ],
  ["a sequence below 0", '{"stream":"$","seq":-1,"duplicate":true}', "malformed"],
  ["a broken sequence", '{"stream":"$","seq":1.5}', "malformed"],
  ["a sequence in text", '{"stream":"$","seq":"7"}', "malformed"],
  ["no sequence", '{"stream":"$","duplicate":true}', "malformed"],
  ["no stream", '{"seq":7}', "malformed"],
  ["another stream", '{"stream":"OTHER","seq":7}', "foreign"],
  ["another stream's duplicate", '{"stream":"OTHER","seq":7,"duplicate":true}', "foreign"],
  ["a stream of another case", '{"stream":"$x","seq":7}', "foreign"],
  [
    "another stream that is full",
    '{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"OTHER","seq":0}',
    "foreign",
  ],
  [
    "an error with a sequence",
    '{"error":{"code":500,"err_code":10077,"description":"store is closed"},"stream":"$","seq":7}',
    "refused",
  ],
  ["an unknown error", '{"error":{"code":500,"err_code":19999},"stream":"$","seq":7}', "refused"],
  ["a list", "[7]", "malformed"],
  ["null", "null", "malformed"],
  ["a number", "7", "malformed"],
  ["plain text", "+OK", "malformed"],
];

describe("an acknowledgement", () => {
  describe("that is invalid leaves the frame unknown", () => {
    test.each(noAcks)("%s", async (_name, reply, failure) => {
      const rig = await startRig(server, { ackTimeoutMs: 100 });
      await withoutStream(rig);
      replyWith(rig, () => reply.replace("$", liveStream(rig)));
      // The frame may be stored or not, because the stream has not answered.
      expect(await rig.send("live", "one", { withinMs: 600 })).toEqual({
        outcome: "unknown",
        code: "timeout",
      });
      expect(rig.heard.failures).toContain(failure);
      expect(rig.heard.framesAcked).toBe(0);
      expect(rig.heard.retries).toBeGreaterThan(0);
      await rig.close();
    });
  });

  test("without a sequence makes the gateway send the frame again", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 100 });
    await withoutStream(rig);
    const staged = `{"stream":"${liveStream(rig)}","seq":0,"duplicate":true}`;
    replyWith(rig, (times) =>
      times < 3 ? staged : `{"stream":"${liveStream(rig)}","seq":1,"duplicate":true}`,
    );
    expect(await rig.send("live", "one")).toEqual(stored);
    expect(rig.heard.retries).toBe(2);
    expect(rig.heard.duplicates).toBe(1);
    await rig.close();
  });

  test("from another service is ignored if it arrives first", async () => {
    const rig = await startRig(server);
    replyWith(rig, (times) => (times % 2 === 0 ? '{"stream":"OTHER","seq":9}' : "nonsense"));
    for (const line of ["one", "two", "three", "four"])
      expect(await rig.send("live", line)).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).toEqual(["one", "two", "three", "four"]);
    expect(rig.heard.retries).toBe(0);
    await rig.close();
  });
});
