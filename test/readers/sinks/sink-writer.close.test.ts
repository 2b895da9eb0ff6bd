import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import type { SinkPosition, SinkTarget } from "../../../src/readers/sinks/sink-target.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { makeStreams, storeFrames } from "../../kit/stored-events.ts";
import { startSink } from "./sink-kit.ts";

const nats = await natsServerForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

class LateTarget implements SinkTarget {
  readonly shown = "a late target";
  readonly said: string[] = [];
  readonly goOn = Promise.withResolvers<void>();

  async open(): Promise<readonly SinkPosition[]> {
    return [];
  }

  async write({ events }: Parameters<SinkTarget["write"]>[0]) {
    this.said.push("begun");
    await this.goOn.promise;
    this.said.push("written");
    return { written: events.length, duplicates: 0, refused: 0 };
  }

  async close(): Promise<void> {}
}

test("closing a sink waits for the write in progress", async () => {
  await makeStreams(connection);
  const target = new LateTarget();
  const { writer } = startSink(connection, target);
  const uuid = "00000000-0000-4000-8000-000000000001";
  const events = [{ uuid, distinctId: "d", receivedAtMs: Date.now() }];
  await storeFrames(connection, [{ lane: "live", projectId: "shop", messageId: "1", events }]);
  await expect.poll(() => target.said).toEqual(["begun"]);
  const says = (text: string) => () => target.said.push(text);
  const gaveUp = writer.close(AbortSignal.abort()).then(says("given up"));
  const whole = writer.close(new AbortController().signal).then(says("ended"));
  setTimeout(target.goOn.resolve, 500);
  await Promise.all([gaveUp, whole]);
  // On a busy machine, the sink may write the position in a separate batch before the end.
  expect(target.said.slice(0, 3)).toEqual(["begun", "given up", "written"]);
  expect(target.said.slice(-2)).toEqual(["written", "ended"]);
});
