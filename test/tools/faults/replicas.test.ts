import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { createClusterStore } from "../../faults/cluster-store.ts";
import { differencesBetween, differencesOf } from "../../faults/replicas.ts";

const stream = "PENSTOCK_LIVE_0";
const messages = 20;

test("the comparison of replicas reports a missing message", async () => {
  const cluster = await createClusterStore();
  onTestFinished(() => cluster.remove());
  await cluster.addStream({ name: stream, subjects: ["live.*"], num_replicas: 3 });
  const connection = await connect({ servers: cluster.readerUrl.split(",") });
  for (let n = 0; n < messages; n++) await jetstream(connection).publish("live.a", `message ${n}`);
  await connection.close();
  expect(await differencesOf(cluster)).toEqual([]);

  const [, second, third] = cluster.nodes;
  const alone = await connect({ servers: second!.url });
  await (await jetstreamManager(alone)).streams.deleteMessage(stream, 5);
  await alone.close();
  const another = await connect({ servers: third!.url });
  await jetstream(another).publish("live.a", "one more");
  await another.close();
  const urls = cluster.nodes.map(({ url }) => url);
  expect(await differencesBetween(urls, new Map([[stream, 3]]))).toEqual([
    `${stream}: replicas end at 20, 21`,
    `${stream}: 2 messages differ between replicas: 5 (not on node 1), 21 (not on node 0 and 1)`,
  ]);
  expect(await differencesBetween(urls, new Map([["another", 3]]))).toEqual([
    "another: 0 of 3 nodes have a replica of it",
  ]);
}, 120_000);
