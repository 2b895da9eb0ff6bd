// Binds a database to one installation. Streams of two installations can be on one NATS server, and
// the same project id may belong to different customers. Only the prefix distinguishes them.

import { StoreError } from "../../../platform/base/store-error.ts";
import { streamName } from "../../../platform/nats/names.ts";
import type { EffectsReader, EffectsStore } from "./port.ts";

export const installationSql = "SELECT subject_prefix FROM installation";

/** The parameter is in the database's own form. */
export function bindSql(parameter: string): string {
  return `INSERT INTO installation
    SELECT ${parameter} WHERE NOT EXISTS (SELECT 1 FROM installation)`;
}

interface Installation {
  /** The first part of the stream names. */
  readonly prefix: string;
  /** The database, as a text for people. */
  readonly shown: string;
}

export class OtherInstallationError extends StoreError {}

/**
 * Rejects with an OtherInstallationError if it belongs to another one. A new database has no owner.
 */
export async function requireInstallation(
  reader: EffectsReader,
  { prefix, shown }: Installation,
): Promise<void> {
  const owner = (await reader.installation()) ?? (await ownerByStreams(reader, prefix));
  if (owner === undefined || owner === prefix) return;
  throw new OtherInstallationError(
    `open ${shown}: it has the events of the installation with PENSTOCK_SUBJECT_PREFIX=${owner}, but this one has ${prefix}: use another PENSTOCK_EFFECTS_URL (--effects-url), or set that prefix (--subject-prefix)`,
  );
}

/** Checks the owner, and binds the database to this installation. The store must be open. */
export async function takeForInstallation(
  store: EffectsStore,
  installation: Installation,
): Promise<void> {
  await requireInstallation(store.reader, installation);
  await store.bindTo(installation.prefix);
}

/**
 * For a database older than stored prefixes. If it has streams of this installation, it belongs to
 * it.
 */
async function ownerByStreams(reader: EffectsReader, prefix: string): Promise<string | undefined> {
  const streams = await reader.applied();
  const isOwn = streams.some(
    ({ stream, lane, partition }) => stream === streamName(prefix, lane, partition),
  );
  const [other] = streams;
  if (isOwn || other === undefined) return undefined;
  return other.stream.slice(0, -streamName("", other.lane, other.partition).length).toLowerCase();
}
