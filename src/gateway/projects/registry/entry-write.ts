import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { apiCodes, isApiError } from "../../../platform/nats/api.ts";
import { type BucketPlace, entrySubjects, ProjectError } from "./bucket.ts";
import { onceLed } from "./leader-wait.ts";

interface EntryToWrite {
  readonly key: string;
  readonly value: string | Uint8Array | undefined;
  /** The expected last sequence of the bucket, or of the entry. The write fails if it differs. */
  readonly expect: { readonly lastSequence: number } | { readonly lastSubjectSequence: number };
}

const triesMax = 30;
const pauseMsMax = 20;

/**
 * Writes the entry that `make` returns. If another process has written meanwhile, calls `make`
 * again and retries.
 */
export async function writeEntry<T extends EntryToWrite | undefined>(
  connection: NatsConnection,
  place: BucketPlace,
  make: () => Promise<T>,
): Promise<T> {
  const js = jetstream(connection);
  const subjects = await onceLed(() => entrySubjects(connection, place));
  for (let tries = 0; tries < triesMax; tries++) {
    const entry = await onceLed(make);
    if (entry === undefined) return entry;
    const { key, value = "", expect } = entry;
    const options = entry.value === undefined ? { expect, headers: deletion() } : { expect };
    try {
      await onceLed(() => js.publish(subjects + key, value, options), { isRepeatable: false });
      return entry;
    } catch (error) {
      if (!isApiError(error, apiCodes.streamWrongLastSequence)) throw error;
      await delay(randomInt(pauseMsMax * (tries + 1)));
    }
  }
  throw new ProjectError("other processes change the registry continuously: try again");
}

function deletion() {
  const marker = headers();
  marker.set("KV-Operation", "DEL");
  return marker;
}
