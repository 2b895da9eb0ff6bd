// Identifies an installation, so that doctor can distinguish the installations of one machine.

import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { shownUrls } from "./access.ts";

export interface Instance {
  /** The URL of NATS without credentials. It is null until an embedded server has an address. */
  readonly nats: string | null;
  readonly subject_prefix: string;
  readonly data_folder: string;
  stream_created: string | null;
}

export function instanceOf({
  natsUrl,
  subjectPrefix,
  dataDir,
}: {
  readonly natsUrl: string | undefined;
  readonly subjectPrefix: string;
  readonly dataDir: string;
}): Instance {
  return {
    nats: natsUrl === undefined ? null : shownUrls(natsUrl),
    subject_prefix: subjectPrefix,
    data_folder: realFolder(dataDir),
    stream_created: null,
  };
}

/**
 * Returns whether both are the same installation. The same creation time is enough, because a
 * server may have several names. Otherwise, both must have a server in common, or the same data
 * folder.
 */
export function isSameInstance(one: Instance, other: Instance): boolean {
  if (one.subject_prefix !== other.subject_prefix) return false;
  if (one.stream_created !== null && one.stream_created === other.stream_created) return true;
  if (one.nats === null || other.nats === null) return one.data_folder === other.data_folder;
  const places = placesOf(one.nats);
  return placesOf(other.nats).some((place) => places.includes(place));
}

export function shownInstance({ nats, subject_prefix: prefix, data_folder: folder }: Instance) {
  return `NATS ${nats ?? "embedded"}, prefix ${prefix}, data folder ${folder}`;
}

export function instanceIn(value: unknown): Instance | undefined {
  const {
    nats,
    subject_prefix: prefix,
    data_folder: folder,
    stream_created: created,
  } = (value ?? {}) as Partial<Instance>;
  if (typeof prefix !== "string" || typeof folder !== "string" || nats === undefined)
    return undefined;
  return {
    nats: nats === null ? null : String(nats),
    subject_prefix: prefix,
    data_folder: folder,
    stream_created: typeof created === "string" ? created : null,
  };
}

function placesOf(urls: string): string[] {
  return urls
    .toLowerCase()
    .split(",")
    .map((url) => {
      const place = url.replace(/^[a-z]+:\/\//, "").replace(/^localhost(?=:|$)/, "127.0.0.1");
      return /:\d+$/.test(place) ? place : `${place}:4222`;
    });
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return resolve(folder);
  }
}
