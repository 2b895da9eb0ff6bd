import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { numbersFrom, randomFrames } from "../../../kit/random-events.ts";
import { makeStreams, storeFrames } from "../../../kit/stored-events.ts";
import { deleteStreams } from "./writer-kit.ts";

const nats = await natsServerForFile({ syncInterval: "2m" });
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

test("streams that are deleted and recreated by the test kit are empty", async () => {
  const lanes = ["live", "historical"] as const;
  for (let time = 0; time < 60; time++) {
    await deleteStreams(connection, nats);
    await makeStreams(connection);
    const frames = lanes.flatMap((lane) =>
      randomFrames(numbersFrom(time), { count: 20 }).map((frame) => ({ ...frame, lane })),
    );
    const sequences = await storeFrames(
      connection,
      frames.map((frame, at) => ({ ...frame, messageId: `${time}-${at}` })),
    );
    expect([sequences[0], sequences[20]]).toEqual([1, 1]);
  }
});
