// How full each stream is, for the scrape: asked of JetStream now and then, beside everything else, and remembered. Asks for each of its
// own streams by name: the list of all streams would be gathered from every server of a cluster, for every gateway process.
// A scrape reads what is remembered and waits for nothing; while NATS is away that is the last known. Decides nothing.

import { JetStreamApiError, type JetStreamManager, jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import type { Lane } from "../types.ts";
import type { NatsLink } from "./connection.ts";
import { lanes, streamName } from "./subject.ts";

export interface StreamFillOptions {
  readonly link: Pick<NatsLink, "connection" | "connected">;
  readonly subjectPrefix: string;
  readonly partitions: number;
  /** How often JetStream is asked. */
  readonly everyMs?: number;
}

export interface StreamSize {
  readonly labels: { readonly lane: Lane; readonly partition: string };
  readonly bytes: number;
  /** Infinity without a limit. */
  readonly bytesMax: number;
}

export interface StreamFill {
  /** As last heard: of this gateway's own streams those that are there, so never more than the partitions of both lanes. */
  sizes(): readonly StreamSize[];
  close(): void;
}

const everyMsDefault = 15_000;
const askTimeoutMs = 2_000;
const streamNotFound = 10_059;

/** Asks at once, then until closed. What JetStream does not answer leaves what is known as it is. */
export function createStreamFill(options: StreamFillOptions): StreamFill {
  const { link, subjectPrefix, partitions, everyMs = everyMsDefault } = options;
  const own = new Map(
    lanes.flatMap((lane) =>
      Array.from({ length: partitions }, (_, partition) => {
        return [streamName(subjectPrefix, lane, partition), { lane, partition: String(partition) }] as const;
      }),
    ),
  );
  const known = new Map<string, StreamSize>();
  let asking = false;

  async function ask(): Promise<void> {
    if (asking || !link.connected) return;
    asking = true;
    try {
      const manager = await jetstreamManager(link.connection, { checkAPI: false, timeout: askTimeoutMs });
      for (const [name, labels] of own) {
        const info = await infoOf(manager, name);
        if (info === undefined) known.delete(name);
        else known.set(name, { labels, ...sizeOf(info) });
      }
    } catch {
      // Said by /readyz and by penstock_nats_connected.
    } finally {
      asking = false;
    }
  }

  const timer = setInterval(() => void ask(), everyMs).unref();
  void ask();
  return { sizes: () => [...known.values()], close: () => clearInterval(timer) };
}

/** Undefined for a stream that is not there. Rejects when JetStream does not answer. */
async function infoOf(manager: JetStreamManager, name: string): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.info(name);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === streamNotFound) return undefined;
    throw error;
  }
}

function sizeOf({ state, config }: StreamInfo): Pick<StreamSize, "bytes" | "bytesMax"> {
  return { bytes: state.bytes, bytesMax: config.max_bytes > 0 ? config.max_bytes : Number.POSITIVE_INFINITY };
}
