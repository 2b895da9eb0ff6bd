// Binds a database to one installation. Without this check, the effects could mix two projects that
// have the same id but belong to different installations.

import { StoreError } from "../../../platform/base/store-error.ts";
import { streamName } from "../../../platform/nats/names.ts";
import type { EffectsReader, EffectsStore } from "./port.ts";

export const bindSql = `INSERT INTO installation
  SELECT CAST($1 AS text) WHERE NOT EXISTS (SELECT 1 FROM installation)`;

interface Installation {
  readonly prefix: string;
  readonly shown: string;
}

export class OtherInstallationError extends StoreError {}

/** Rejects with an OtherInstallationError if the database belongs to another installation. */
export async function requireInstallation(
  reader: EffectsReader,
  { prefix, shown }: Installation,
): Promise<void> {
  const owner = (await reader.installation()) ?? (await ownerByStreams(reader, prefix));
  if (owner === undefined || owner === prefix) return;
  throw new OtherInstallationError(
    `cannot open ${shown}: its events are from the installation with PENSTOCK_SUBJECT_PREFIX=${owner}, but this installation has ${prefix}: set PENSTOCK_EFFECTS_URL (--effects-url) to another database, or PENSTOCK_SUBJECT_PREFIX (--subject-prefix) to ${owner}`,
  );
}

export async function takeForInstallation(
  store: EffectsStore,
  installation: Installation,
): Promise<void> {
  await requireInstallation(store.reader, installation);
  await store.bindTo(installation.prefix);
}

async function ownerByStreams(reader: EffectsReader, prefix: string): Promise<string | undefined> {
  const streams = await reader.applied();
  const isOwn = streams.some(
    ({ stream, lane, partition }) => stream === streamName(prefix, lane, partition),
  );
  const [other] = streams;
  if (isOwn || other === undefined) return undefined;
  return other.stream.slice(0, -streamName("", other.lane, other.partition).length).toLowerCase();
}
