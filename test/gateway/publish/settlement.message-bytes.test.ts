import { expect, test } from "vitest";
import { managerOf } from "../../../src/platform/nats/api.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  liveStream,
  nextTurn,
  projectOf,
  type Rig,
  requestWaiter,
  startRig,
} from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

async function streamBytes(rig: Rig): Promise<number> {
  const manager = await managerOf(rig.link.connection, { timeoutMs: 5_000 });
  return (await manager.streams.info(liveStream(rig))).state.bytes;
}

function send(rig: Rig, project: string, line: string, messageId?: string): Promise<number> {
  const text = `${line}\n`;
  const { publisher } = rig;
  const own = messageId !== undefined;
  const sink = own
    ? publisher.ownFrame("live", projectOf(project), text.length)
    : publisher.sharedFrame("live", projectOf(project), text.length);
  sink.commit(sink.length + sink.buffer.write(text, sink.length), 1);
  return new Promise((resolve, reject) => {
    const waiter = requestWaiter((outcome, _code, _events, bytes, all) => {
      if (outcome === "duplicate") resolve(0);
      else if (outcome === "stored" && bytes === text.length) resolve(all);
      else reject(new Error(`${outcome} ${bytes}`));
    });
    const deadlineMs = performance.now() + 10_000;
    if (own) publisher.submit(sink, messageId, waiter, deadlineMs);
    else publisher.join(sink, waiter, deadlineMs);
  });
}

for (const frameScope of ["project", "partition"] as const) {
  test(`stored bytes are divided among the requests of a frame per ${frameScope}`, async () => {
    const rig = await startRig(server, { frameScope });
    const sent: Promise<number>[] = [];
    // The first frame is sent alone. Later events collect in one frame per project, and these
    // frames are sent in batches.
    for (let turn = 0; turn < 5; turn++) {
      for (let at = 0; at < 60; at++)
        sent.push(send(rig, `p${at % 20}`, "x".repeat(1 + ((at * 97) % 500))));
      await nextTurn();
    }
    for (const id of ["one", "two", "one"]) sent.push(send(rig, "large", "y".repeat(70_000), id));
    const parts = await Promise.all(sent);
    const sum = parts.reduce((total, bytes) => total + bytes, 0);
    // The bytes of each request are rounded.
    expect(Math.abs(sum - (await streamBytes(rig)))).toBeLessThan(parts.length);
    expect(rig.heard.batches.length > 0).toBe(frameScope === "project");
    expect(rig.heard.duplicates).toBe(1);
    await rig.close();
  });
}
