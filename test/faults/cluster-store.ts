// A cluster of three nats-servers on loopback, for streams with three replicas. A restarted node
// keeps its ports, name and store.

import { rmSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { managerOf } from "../../src/platform/nats/api.ts";
import { freePort } from "../kit/free-port.ts";
import { startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import {
  type ClusterNetwork,
  here,
  type NetworkKind,
  type NetworkOfNodes,
} from "./cluster-network.ts";
import { createClusterNetwork } from "./networks.ts";
import { makeSingle } from "./one-replica.ts";
import type { Store } from "./scenario.ts";

interface ClusterStoreOptions {
  readonly binary?: string | undefined;
  readonly syncInterval?: string | undefined;
  /**
   * If false, does not wait until JetStream has a leader, so that all nodes can start at once.
   * Default: true.
   */
  readonly awaitLeader?: boolean | undefined;
  readonly network?: NetworkKind | undefined;
  readonly folder?: string | undefined;
  readonly maxFileStore?: number;
}

export interface ClusterStore extends Store {
  /** Creates a stream. Resolves when clients of every node can publish to it. */
  addStream(config: NewStream): Promise<void>;
  /** Resolves when all replicas of a stream are equal, and every node answers requests. */
  whole(stream: string): Promise<number>;
  stepDown(stream: string): Promise<void>;
  loseDisk(node: TestNatsServer): Promise<void>;
  /**
   * Stops every node and starts each node alone on its data, so that a node answers from its own
   * replica.
   */
  partForGood(): Promise<void>;
  readonly network?: ClusterNetwork;
}

interface NewStream {
  readonly name: string;
  readonly subjects: string[];
  readonly num_replicas: number;
}

const replicas = 3;
/**
 * Nodes may consider each other offline for half a minute. Creating a new cluster is then faster.
 */
const startMsMax = 25_000;
const leaderMsMax = 45_000;
const wholeMsMax = 60_000;
const askTimeoutMs = 500;
const changeMsMax = 3_000;
const pollMs = 100;
const maxFileStoreDefault = 64 * 1_073_741_824;

const nameOf = (node: number): string => `node-${node}`;

export async function createClusterStore(options: ClusterStoreOptions = {}): Promise<ClusterStore> {
  const routePorts = [await freePort(), await freePort(), await freePort()];
  const monitorPorts = [await freePort(), await freePort(), await freePort()];
  const network = options.network && (await createClusterNetwork(options.network, routePorts));
  const nodes: TestNatsServer[] = [];
  const remove = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.remove()));
    await network?.close();
  };
  let gatewayUrls: readonly string[];
  try {
    // Nodes start one after another. Nodes that connect to each other at the same instant close
    // each other's routes as duplicates (seen in 2.10.27).
    for (const node of routePorts.keys()) {
      nodes.push(
        await startNode({ node, routePorts, monitorPort: monitorPorts[node]!, network, options }),
      );
    }
    gatewayUrls =
      (await network?.openToGateway(nodes.map((node) => node.port))) ??
      nodes.map((node) => node.url);
    if (options.awaitLeader !== false) await awaitMetaLeader(nodes);
  } catch (error) {
    await remove();
    throw error;
  }

  async function infoOf(
    stream: string,
    among: readonly TestNatsServer[] = nodes,
  ): Promise<StreamInfo | undefined> {
    return await askAny(among, (manager) => manager.streams.info(stream));
  }

  async function endsOf(stream: string): Promise<readonly number[]> {
    const ends = nodes.map((_, node) => {
      const place = network?.placeOf(node) ?? here;
      return ownLastSequence(`http://${place.host}:${monitorPorts[node]}`, stream);
    });
    return await Promise.all(ends);
  }

  function nodeNamed(name: string | undefined): TestNatsServer | undefined {
    return nodes.find((_, node) => nameOf(node) === name);
  }

  return {
    gatewayUrl: gatewayUrls.join(","),
    readerUrl: nodes.map((node) => node.url).join(","),
    replicas,
    nodes,
    ...(network === undefined ? {} : { network, gatewayPlace: network.placeOf("gateway") }),
    async leaderOf(stream, among = nodes) {
      // A leader that is or was cut off may still consider itself the leader. So only the nodes in
      // `among` are queried, and only about themselves.
      const find = async (): Promise<TestNatsServer | undefined> => {
        const leader = nodeNamed((await infoOf(stream, among))?.cluster?.leader);
        return leader !== undefined && among.includes(leader) ? leader : undefined;
      };
      const leader = await poll(leaderMsMax, find);
      if (leader === undefined)
        throw new Error(`find the leader of ${stream}: none within ${leaderMsMax} ms`);
      return leader;
    },
    addStream: (config) => addStream(nodes, config),
    async whole(stream) {
      let last: StreamInfo | undefined;
      let ends: readonly number[] = [];
      const found = await poll(wholeMsMax, async () => {
        last = await infoOf(stream);
        const others = last?.cluster?.replicas ?? [];
        const wanted = last?.config.num_replicas ?? replicas;
        const isSaid =
          others.length === wanted - 1 &&
          others.every((peer) => peer.current && !peer.offline && (peer.lag ?? 0) === 0);
        if (!isSaid) return undefined;
        ends = await endsOf(stream);
        return ends.filter((end) => end >= last!.state.last_seq).length >= wanted
          ? wanted
          : undefined;
      });
      if (!found) {
        throw new Error(
          `wait for all replicas of ${stream}: ${JSON.stringify(last?.cluster)}, nodes end at ${ends.join(", ")} of ${last?.state.last_seq}`,
        );
      }
      // Streams may have leaders although JetStream itself has no leader. JetStream then does not
      // answer.
      const led = await pollEach(nodes, wholeMsMax, (manager) => manager.streams.names().next());
      if (!led) throw new Error("wait for JetStream's own leader: not every node knows it");
      return found;
    },
    async stepDown(stream) {
      const subject = `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`;
      // Nodes are queried one at a time, because a second query would depose the leader that was
      // elected after the first query.
      for (const node of nodes) {
        const answer = await ask(node, (_, connection) =>
          connection.request(subject, "", { timeout: changeMsMax }),
        );
        if (answer?.json<{ success?: boolean }>().success === true) return;
      }
      throw new Error(`step down as the leader of ${stream}: no node did`);
    },
    async loseDisk(node) {
      await node.kill();
      rmSync(node.storeDir, { recursive: true, force: true });
    },
    async partForGood() {
      await Promise.all(nodes.map((node) => node.stop()));
      for (const { storeDir } of nodes) makeSingle(storeDir);
      await Promise.all(nodes.map((node) => node.restart({ extraConfig: "" })));
    },
    remove,
  };
}

interface NodeParts {
  readonly node: number;
  readonly routePorts: readonly number[];
  readonly monitorPort: number;
  readonly network: NetworkOfNodes | undefined;
  readonly options: ClusterStoreOptions;
}

function startNode({
  node,
  routePorts,
  monitorPort,
  network,
  options,
}: NodeParts): Promise<TestNatsServer> {
  const { binary, syncInterval, folder, maxFileStore = maxFileStoreDefault } = options;
  const place = network?.placeOf(node) ?? here;
  const routes = routePorts.map((port, other) =>
    network === undefined || other === node
      ? `nats://127.0.0.1:${port}`
      : network.routeUrl(node, other),
  );
  // Nodes and clients would use the announced addresses, and bypass the network and the proxies.
  const untold = network === undefined ? [] : ['  advertise: "127.0.0.1:1"'];
  return startNatsServer({
    ...(binary === undefined ? {} : { binary }),
    ...(syncInterval === undefined ? {} : { syncInterval }),
    ...(place === here ? {} : { place }),
    ...(folder === undefined ? {} : { storeDir: path.join(folder, nameOf(node)) }),
    maxFileStore,
    extraConfig: [
      `server_name: ${nameOf(node)}`,
      `http: "${place === here ? "127.0.0.1" : "0.0.0.0"}:${monitorPort}"`,
      "cluster {",
      "  name: penstock",
      `  listen: "${place.innerHost}:${routePorts[node]}"`,
      `  routes: [${routes.map((route) => `"${route}"`).join(", ")}]`,
      "  no_advertise: true",
      ...untold,
      "}",
    ].join("\n"),
  });
}

async function awaitMetaLeader(nodes: readonly TestNatsServer[]): Promise<void> {
  const [first] = nodes;
  if (first === undefined) throw new Error("start a cluster: it has no nodes");
  const trial = { name: "trial", subjects: ["trial"], num_replicas: replicas };
  // JetStream drops requests without an error before it has a leader.
  const led = await poll(startMsMax, () => ask(first, (manager) => manager.getAccountInfo()));
  const placed =
    led &&
    (await addStream(nodes, trial).then(
      () => true,
      () => false,
    ));
  if (!placed)
    throw new Error(
      `start a cluster: no leader within ${startMsMax} ms: the nodes' logs:\n${nodes.map((node) => node.log()).join("\n")}`,
    );
  await poll(startMsMax, () =>
    ask(first, (manager) => manager.streams.delete(trial.name), changeMsMax),
  );
}

/**
 * A node passes messages to a new stream after it has learned of the stream's leader. Before,
 * clients of the node get "jetstream is not enabled".
 */
async function addStream(nodes: readonly TestNatsServer[], config: NewStream): Promise<void> {
  const [first] = nodes;
  const added = await poll(startMsMax, () =>
    ask(first!, (manager) => manager.streams.add(config), changeMsMax),
  );
  // The stream rejects this message.
  const head = headers();
  head.set("Nats-Expected-Stream", "none");
  const subject = config.subjects[0]!.replaceAll(/[*>]/g, "trial");
  const reached =
    added &&
    (await pollEach(nodes, startMsMax, (_, connection) =>
      connection.request(subject, "", { timeout: askTimeoutMs, headers: head }),
    ));
  if (!reached) throw new Error(`add stream ${config.name}: not every node reaches its leader`);
}

interface OwnStreams {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly {
      readonly name: string;
      readonly state: { readonly last_seq: number };
    }[];
  }[];
}

async function ownLastSequence(monitorUrl: string, stream: string): Promise<number> {
  try {
    const signal = AbortSignal.timeout(askTimeoutMs);
    const answer = await fetch(`${monitorUrl}/jsz?accounts=true&streams=true`, { signal });
    const { account_details: accounts = [] } = (await answer.json()) as OwnStreams;
    const found = accounts
      .flatMap((account) => account.stream_detail ?? [])
      .find(({ name }) => name === stream);
    return found?.state.last_seq ?? -1;
  } catch {
    return -1;
  }
}

type Question<T> = (manager: JetStreamManager, connection: NatsConnection) => Promise<T>;

async function askAny<T>(
  nodes: readonly TestNatsServer[],
  question: Question<T>,
): Promise<T | undefined> {
  const answers = nodes.map(async (node) => {
    const answer = await ask(node, question);
    if (answer === undefined) throw new Error("no answer");
    return answer;
  });
  return await Promise.any(answers).catch(() => undefined);
}

/** Returns whether each node answers the question in time. */
async function pollEach(
  nodes: readonly TestNatsServer[],
  msMax: number,
  question: Question<unknown>,
): Promise<boolean> {
  const answers = nodes.map((node) => poll(msMax, () => ask(node, question)));
  return (await Promise.all(answers)).every((answer) => answer !== undefined);
}

async function ask<T>(
  node: TestNatsServer,
  question: Question<T>,
  timeoutMs = askTimeoutMs,
): Promise<T | undefined> {
  try {
    const connection = await connect({
      servers: node.url,
      timeout: askTimeoutMs,
      reconnect: false,
    });
    try {
      return await question(await managerOf(connection, { timeoutMs }), connection);
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
