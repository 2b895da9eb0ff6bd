// Keeps a database to one installation: streams of two with different prefixes can lie on one NATS
// server, and one project id may be two customers' then. The prefix is all that tells them apart.

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
  /** What the names of its streams begin with. */
  readonly prefix: string;
  /** The database, for people. */
  readonly shown: string;
}

export class OtherInstallationError extends StoreError {}

/** Rejects with an OtherInstallationError where it is another's. A new database is nobody's. */
export async function requireInstallation(
  reader: EffectsReader,
  { prefix, shown }: Installation,
): Promise<void> {
  const owner = (await reader.installation()) ?? (await ownerByStreams(reader, prefix));
  if (owner === undefined || owner === prefix) return;
  throw new OtherInstallationError(
    `open ${shown}: it has the events of the installation with PENSTOCK_SUBJECT_PREFIX=${owner}, and this one has ${prefix}: name another PENSTOCK_EFFECTS_URL (--effects-url), or set that prefix (--subject-prefix)`,
  );
}

/** The same, and from now on it is this one's. The store is open. */
export async function takeForInstallation(
  store: EffectsStore,
  installation: Installation,
): Promise<void> {
  await requireInstallation(store.reader, installation);
  await store.bindTo(installation.prefix);
}

/** For a database from before prefixes were noted. With streams of this one's, it is this one's. */
async function ownerByStreams(reader: EffectsReader, prefix: string): Promise<string | undefined> {
  const streams = await reader.applied();
  const isOwn = streams.some(
    ({ stream, lane, partition }) => stream === streamName(prefix, lane, partition),
  );
  const [other] = streams;
  if (isOwn || other === undefined) return undefined;
  return other.stream.slice(0, -streamName("", other.lane, other.partition).length).toLowerCase();
}
