// Names the installation that a process belongs to, so that `doctor` can tell the processes of one
// installation from those of another on the same machine.

import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { shownUrls } from "./access.ts";

/** As it is in the answer to /livez. */
export interface Instance {
  /** The servers, without credentials; null while the address of an embedded one is not known. */
  readonly nats: string | null;
  readonly subject_prefix: string;
  readonly data_folder: string;
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
  };
}

/**
 * Whether both store in the same streams: under the same prefix, in servers of which they name one
 * alike. Without the servers of one of them, the data folder counts.
 */
export function isSameInstance(one: Instance, other: Instance): boolean {
  if (one.subject_prefix !== other.subject_prefix) return false;
  if (one.nats === null || other.nats === null) return one.data_folder === other.data_folder;
  const places = placesOf(one.nats);
  return placesOf(other.nats).some((place) => places.includes(place));
}

export function shownInstance({ nats, subject_prefix: prefix, data_folder: folder }: Instance) {
  return `NATS ${nats ?? "embedded"}, prefix ${prefix}, data folder ${folder}`;
}

/** Undefined if the value is not one, as of an older version. */
export function instanceIn(value: unknown): Instance | undefined {
  const { nats, subject_prefix: prefix, data_folder: folder } = (value ?? {}) as Partial<Instance>;
  const isOne = typeof prefix === "string" && typeof folder === "string" && nats !== undefined;
  return isOne
    ? { nats: nats === null ? null : String(nats), subject_prefix: prefix, data_folder: folder }
    : undefined;
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
