// A cluster of three nats-servers, each a process with a store of its own on loopback, for streams with three replicas.
// A node that is restarted keeps its ports, its name and its store. Must not decide what happens to a node: the scenario does.

import { setTimeout as delay } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { freePort } from "../test/kit/free-port.ts";
import { startNatsServer, type TestNatsServer } from "../test/kit/nats-server.ts";
import type { Store } from "./scenario.ts";

export interface ClusterStoreOptions {
  /** Default: what the tests run against. */
  readonly binary?: string | undefined;
  /** `always` (the default), or a duration. */
  readonly syncInterval?: string | undefined;
  /** False: does not wait until JetStream has a leader, as when all nodes come up after a power cut. Default true. */
  readonly awaitLeader?: boolean | undefined;
}

export interface ClusterStore extends Store {
  /** Fulfilled when every replica of the stream runs and has all of it. Rejects after 30 s. */
  whole(stream: string): Promise<void>;
  /** Tells the stream's leader to give way, as an operator does. */
  stepDown(stream: string): Promise<void>;
}

const replicas = 3;
const startMsMax = 30_000;
const leaderMsMax = 10_000;
const wholeMsMax = 30_000;
const askTimeoutMs = 500;
/** What changes the cluster takes longer than a question. */
const changeMsMax = 3_000;
const pollMs = 20;
/** Room for streams with the default limits. It is not taken before it is written. */
const fileStoreBytesMax = 64 * 1_073_741_824;

const nameOf = (node: number): string => `node-${node}`;

/** Rejects when a node does not start, or when they find no leader within 30 s. The caller calls remove() in the end. */
export async function createClusterStore(options: ClusterStoreOptions = {}): Promise<ClusterStore> {
  // The nodes must know one another's ports before they start.
  const routePorts = [await freePort(), await freePort(), await freePort()];
  const nodes: TestNatsServer[] = [];
  const remove = async (): Promise<void> => void (await Promise.all(nodes.map((node) => node.remove())));
  try {
    // One after another: nodes that dial each other in the same instant close each other's routes as duplicates, and a peer
    // can then count as offline for half a minute (seen in 2.10.27).
    for (const node of routePorts.keys()) nodes.push(await startNode(node, routePorts, options));
    if (options.awaitLeader !== false) await awaitMetaLeader(nodes);
  } catch (error) {
    await remove();
    throw error;
  }

  /** What the stream's leader says of it: nobody else answers. Undefined when nobody does. */
  async function infoOf(stream: string): Promise<StreamInfo | undefined> {
    return await askAny(nodes, (manager) => manager.streams.info(stream));
  }

  function nodeNamed(name: string | undefined): TestNatsServer | undefined {
    return nodes.find((_, node) => nameOf(node) === name);
  }

  const url = nodes.map((node) => node.url).join(",");
  return {
    gatewayUrl: url,
    readerUrl: url,
    replicas,
    nodes,
    async leaderOf(stream) {
      const leader = await poll(leaderMsMax, async () => nodeNamed((await infoOf(stream))?.cluster?.leader));
      if (leader === undefined) throw new Error(`find the leader of ${stream}: none within ${leaderMsMax} ms`);
      return leader;
    },
    async whole(stream) {
      let last: StreamInfo | undefined;
      const found = await poll(wholeMsMax, async () => {
        last = await infoOf(stream);
        const others = last?.cluster?.replicas ?? [];
        return others.length === replicas - 1 && others.every((peer) => peer.current && !peer.offline)
          ? true
          : undefined;
      });
      if (!found) throw new Error(`wait for all replicas of ${stream}: ${JSON.stringify(last?.cluster)}`);
    },
    async stepDown(stream) {
      const subject = `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`;
      // One at a time: the second to ask would depose whoever came after.
      for (const node of nodes) {
        const answer = await ask(node, (_, connection) => connection.request(subject, "", { timeout: changeMsMax }));
        if (answer?.json<{ success?: boolean }>().success === true) return;
      }
      throw new Error(`step down as the leader of ${stream}: nobody did`);
    },
    remove,
  };
}

function startNode(node: number, routePorts: readonly number[], options: ClusterStoreOptions): Promise<TestNatsServer> {
  const { binary, syncInterval } = options;
  return startNatsServer({
    ...(binary === undefined ? {} : { binary }),
    ...(syncInterval === undefined ? {} : { syncInterval }),
    maxFileStore: fileStoreBytesMax,
    extraConfig: [
      `server_name: ${nameOf(node)}`,
      "cluster {",
      "  name: penstock",
      `  listen: "127.0.0.1:${routePorts[node]}"`,
      `  routes: [${routePorts.map((port) => `"nats://127.0.0.1:${port}"`).join(", ")}]`,
      "}",
    ].join("\n"),
  });
}

/** JetStream's own leader answers, and knows every node well enough to place three replicas. */
async function awaitMetaLeader(nodes: readonly TestNatsServer[]): Promise<void> {
  const [first] = nodes;
  if (first === undefined) throw new Error("start a cluster: it has no nodes");
  const trial = { name: "trial", subjects: ["trial"], num_replicas: replicas };
  // What is asked for before there is a leader is lost, and nobody says so: only small questions until one answers.
  const led = await poll(startMsMax, () => ask(first, (manager) => manager.getAccountInfo()));
  const placed =
    led && (await poll(startMsMax, () => ask(first, (manager) => manager.streams.add(trial), changeMsMax)));
  if (!placed)
    throw new Error(
      `start a cluster: no leader within ${startMsMax} ms: the nodes' logs:\n${nodes.map((node) => node.log()).join("\n")}`,
    );
  await poll(startMsMax, () => ask(first, (manager) => manager.streams.delete(trial.name), changeMsMax));
}

type Question<T> = (manager: JetStreamManager, connection: NatsConnection) => Promise<T>;

/** The first answer of a node; a node that is dead or frozen costs a moment. */
async function askAny<T>(nodes: readonly TestNatsServer[], question: Question<T>): Promise<T | undefined> {
  const answers = nodes.map(async (node) => {
    const answer = await ask(node, question);
    if (answer === undefined) throw new Error("no answer");
    return answer;
  });
  return await Promise.any(answers).catch(() => undefined);
}

async function ask<T>(node: TestNatsServer, question: Question<T>, timeout = askTimeoutMs): Promise<T | undefined> {
  try {
    const connection = await connect({ servers: node.url, timeout: askTimeoutMs, reconnect: false });
    try {
      return await question(await jetstreamManager(connection, { checkAPI: false, timeout }), connection);
    } finally {
      await connection.close();
    }
  } catch {
    return undefined;
  }
}

async function poll<T>(msMax: number, look: () => Promise<T | undefined>): Promise<T | undefined> {
  const deadline = performance.now() + msMax;
  for (;;) {
    const found = await look();
    if (found !== undefined || performance.now() > deadline) return found;
    await delay(pollMs);
  }
}
