// Compares every replica of every stream, because only the leader answers requests. Ends the
// cluster, and starts each node alone on its data.

import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { readMessages } from "../../bench/load/stored.ts";
import type { ClusterStore } from "./cluster-store.ts";

type Replica = ReadonlyMap<string, StreamCopy>;

interface StreamCopy {
  readonly lastSequence: number;
  readonly messages: ReadonlyMap<number, string>;
}

const namesMax = 3;
const askMsMax = 5_000;
const growMsMax = 60_000;
const namesMsMax = 60_000;
const againMs = 200;
const steadyMs = 2_000;

/**
 * Returns an empty list if the nodes are equal. All nodes must be up, and no event may still be in
 * flight.
 */
export async function differencesOf(cluster: ClusterStore): Promise<string[]> {
  const replicas = new Map<string, number>();
  const incomplete: string[] = [];
  try {
    const names = await namesIn(cluster.readerUrl);
    for (const stream of names) await cluster.whole(stream);
    // A node that returned with an empty disk is first reported as current, although it lacks data.
    // So each node must stay current for a while.
    await delay(steadyMs);
    for (const stream of names) replicas.set(stream, await cluster.whole(stream));
  } catch (error) {
    incomplete.push((error as Error).message);
  }
  await cluster.partForGood();
  const urls = cluster.nodes.map((node) => node.url);
  return incomplete.length > 0 ? incomplete : await differencesBetween(urls, replicas);
}

/** The nodes are no longer connected. `replicas` contains the number of nodes with each stream. */
export async function differencesBetween(
  urls: readonly string[],
  replicas: ReadonlyMap<string, number>,
): Promise<string[]> {
  const nodes = await Promise.all(urls.map(replicaOn));
  return [...replicas].flatMap(([stream, count]) => differencesIn(stream, count, nodes));
}

/**
 * The new replicas are filled later. Retries for a minute, because streams may have leaders before
 * JetStream itself has a leader.
 */
export async function grow({ readerUrl }: ClusterStore): Promise<void> {
  const deadline = performance.now() + growMsMax;
  for (;;) {
    try {
      await askToGrow(readerUrl);
      return;
    } catch (error) {
      if (performance.now() > deadline)
        throw new Error("give every stream three replicas", { cause: error });
      await delay(againMs);
    }
  }
}

async function askToGrow(readerUrl: string): Promise<void> {
  const connection = await connect({ servers: readerUrl.split(",") });
  try {
    const manager = await jetstreamManager(connection, { timeout: askMsMax });
    for await (const stream of manager.streams.names())
      await manager.streams.update(stream, { num_replicas: 3 });
  } finally {
    await connection.close();
  }
}

/**
 * A node may report that JetStream has no leader for a while after the other nodes know the leader.
 */
async function namesIn(url: string): Promise<string[]> {
  const deadline = performance.now() + namesMsMax;
  for (;;) {
    try {
      return await askForNames(url);
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await delay(againMs);
    }
  }
}

async function askForNames(url: string): Promise<string[]> {
  const connection = await connect({ servers: url.split(",") });
  try {
    const names: string[] = [];
    for await (const name of (await jetstreamManager(connection)).streams.names()) names.push(name);
    return names;
  } finally {
    await connection.close();
  }
}

async function replicaOn(url: string): Promise<Replica> {
  const connection = await connect({ servers: url });
  try {
    const manager = await jetstreamManager(connection);
    const streams = new Map<string, StreamCopy>();
    for await (const stream of manager.streams.names()) {
      const messages = new Map<number, string>();
      const mark = { stream, lastSequence: 0, subject: ">" };
      await readMessages(connection, mark, ({ subject, headers, data, info }) => {
        const hash = createHash("sha1").update(subject).update(String(headers)).update(data);
        messages.set(info.streamSequence, hash.digest("base64"));
      });
      const { state } = await manager.streams.info(stream);
      streams.set(stream, { lastSequence: state.last_seq, messages });
    }
    return streams;
  } finally {
    await connection.close();
  }
}

function differencesIn(stream: string, replicas: number, nodes: readonly Replica[]): string[] {
  const copies = nodes.flatMap((replica, node) => {
    const copy = replica.get(stream);
    return copy === undefined ? [] : [{ node, ...copy }];
  });
  if (copies.length !== replicas)
    return [`${stream}: ${copies.length} of ${replicas} nodes have a replica of it`];
  const ends = new Set(copies.map(({ lastSequence }) => lastSequence));
  const different: string[] = [];
  for (const sequence of new Set(copies.flatMap(({ messages }) => [...messages.keys()]))) {
    if (new Set(copies.map(({ messages }) => messages.get(sequence))).size === 1) continue;
    const lacking = copies
      .filter(({ messages }) => !messages.has(sequence))
      .map(({ node }) => node);
    different.push(
      `${sequence}${lacking.length > 0 ? ` (not on node ${lacking.join(" and ")})` : " (not the same)"}`,
    );
  }
  return [
    ...(ends.size > 1 ? [`${stream}: replicas end at ${[...ends].join(", ")}`] : []),
    ...(different.length > 0
      ? [
          `${stream}: ${different.length} messages differ between replicas: ${different.slice(0, namesMax).join(", ")}`,
        ]
      : []),
  ];
}
