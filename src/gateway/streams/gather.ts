// Configures the streams of a hub. They then mirror the streams of the same names in the JetStream
// domains of the leaf nodes.

import type { JetStreamManager, StreamSource } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { apiPrefixOf, managerOf, nanosPerMs } from "../../platform/nats/api.ts";

export interface GatheredStream {
  readonly stream: string;
  readonly leaf: string;
  readonly heard?: {
    readonly messagesBehind: number;
    readonly silentMs: number;
  };
}

const apiTimeoutMs = 5_000;

/** Adds sources to the streams, which must exist. Existing sources stay. */
export async function gatherFrom(
  connection: NatsConnection,
  { streams, leaves }: { readonly streams: readonly string[]; readonly leaves: readonly string[] },
): Promise<GatheredStream[]> {
  const jsm = await managerOf(connection, { timeoutMs: apiTimeoutMs });
  const gathered: GatheredStream[] = [];
  for (const stream of streams) gathered.push(...(await gatherOne(jsm, stream, leaves)));
  return gathered;
}

async function gatherOne(
  jsm: JetStreamManager,
  stream: string,
  leaves: readonly string[],
): Promise<GatheredStream[]> {
  const { config } = await jsm.streams.info(stream);
  const sources = config.sources ?? [];
  const known = new Set(sources.map(leafOf));
  const added = leaves.filter((leaf) => !known.has(leaf)).map((leaf) => sourceOf(stream, leaf));
  if (added.length > 0) await jsm.streams.update(stream, { sources: [...sources, ...added] });
  const info = await jsm.streams.info(stream);
  const gathered = (info.sources ?? []).map((source) => ({
    stream,
    leaf: leafOf(source),
    ...(source.active < 0
      ? {}
      : { heard: { messagesBehind: source.lag, silentMs: source.active / nanosPerMs } }),
  }));
  return gathered.sort((left, right) => (left.leaf < right.leaf ? -1 : 1));
}

function sourceOf(stream: string, leaf: string): StreamSource {
  return { name: stream, external: { api: apiPrefixOf(leaf), deliver: "" } };
}

function leafOf({ name, external }: Pick<StreamSource, "name" | "external">): string {
  return /^\$JS\.([^.]+)\.API$/.exec(external?.api ?? "")?.[1] ?? name;
}
