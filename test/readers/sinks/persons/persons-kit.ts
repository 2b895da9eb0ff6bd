import type { NatsConnection } from "@nats-io/nats-core";
import { onTestFinished } from "vitest";
import { readerAt, type StorePlace } from "../../../../src/readers/effects/store/open.ts";
import { EffectsWriter } from "../../../../src/readers/effects/writer/effects-writer.ts";
import { EventPersons } from "../../../../src/readers/sinks/persons/event-persons.ts";
import { openedStore, startDatabases } from "../../../kit/effects-databases.ts";
import { silent } from "../../../kit/processes.ts";

interface PersonsRig {
  readonly persons: EventPersons;
  wantedOf(rows: readonly Record<string, unknown>[]): Promise<string[]>;
}

export async function personsOn(connection: NatsConnection): Promise<PersonsRig> {
  const databases = await startDatabases("SQLite");
  onTestFinished(() => databases.remove());
  const place: StorePlace = await databases.newDatabase();
  const store = await openedStore(place);
  onTestFinished(() => store.close());
  const writer = new EffectsWriter({ connection, store, prefix: "penstock", log: silent });
  writer.start();
  onTestFinished(() => writer.close());
  const source = await readerAt(place);
  onTestFinished(() => source.close());
  return {
    persons: new EventPersons({ source, log: silent }),
    async wantedOf(rows) {
      const ids = rows.map(({ project_id: projectId, distinct_id: id }) => ({
        projectId: String(projectId),
        distinctIds: [String(id)],
      }));
      const uuids = await source.personUuids(ids);
      const lines = rows.map(({ uuid, person_profile: profile, kind }, at) => {
        const hasPerson = Boolean(profile) && kind !== "group_identify";
        return `${uuid} ${hasPerson ? uuids[at] : null}`;
      });
      return lines.sort();
    },
  };
}

export function personsIn(rows: readonly Record<string, unknown>[]): string[] {
  return rows.map(({ uuid, person_uuid: person }) => `${uuid} ${person}`).sort();
}
