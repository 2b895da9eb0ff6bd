import { JetStreamApiError, jetstream, jetstreamManager, StorageType } from "@nats-io/jetstream";
import { lanes, streamName } from "../../src/platform/nats/names.ts";
import { connectReader } from "./connect-reader.ts";
import type { Store } from "./scenario.ts";

const subjectPrefix = "penstock";
const filler = "filler";
const messageBytesMax = 4_194_304;
const messageBytesMin = 64;
const publishTimeoutMs = 20_000;

export function isFiller(subject: string): boolean {
  return subject.slice(subject.lastIndexOf(".") + 1).startsWith(filler);
}

/** Fills the first partition of both lanes until even a small message does not fit. */
export async function fillStreams(store: Store): Promise<void> {
  const connection = await connectReader(store);
  try {
    for (const lane of lanes) {
      for (let bytes = messageBytesMax; bytes >= messageBytesMin; ) {
        const stored = await jetstream(connection)
          .publish(`${subjectPrefix}.${lane}.0.${filler}`, new Uint8Array(bytes), {
            timeout: publishTimeoutMs,
          })
          .then(() => true, refusedAsFull);
        if (!stored) bytes /= 2;
      }
    }
  } finally {
    await connection.close();
  }
}

export async function emptyStreams(store: Store): Promise<void> {
  const connection = await connectReader(store);
  try {
    const manager = await jetstreamManager(connection);
    for (const lane of lanes) {
      const filter = `${subjectPrefix}.${lane}.0.${filler}`;
      await manager.streams.purge(streamName(subjectPrefix, lane, 0), { filter });
    }
  } finally {
    await connection.close();
  }
}

/** Creates a foreign stream without a limit, which fills all space of the server. */
export async function fillServer(store: Store): Promise<void> {
  const connection = await connectReader(store);
  try {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: filler, subjects: [filler], storage: StorageType.File });
    const publish = (): Promise<boolean> =>
      jetstream(connection)
        .publish(filler, new Uint8Array(messageBytesMax), { timeout: publishTimeoutMs })
        .then(() => true, refusedAsFull);
    while (await publish());
  } finally {
    await connection.close();
  }
}

export async function emptyServer(store: Store): Promise<void> {
  const connection = await connectReader(store);
  try {
    await (await jetstreamManager(connection)).streams.delete(filler);
  } finally {
    await connection.close();
  }
}

function refusedAsFull(error: unknown): false {
  if (error instanceof JetStreamApiError && /maximum bytes|insufficient/.test(error.message))
    return false;
  throw error;
}
