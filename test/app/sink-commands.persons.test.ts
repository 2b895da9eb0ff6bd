import { expect, onTestFinished, test } from "vitest";
import { peopleOf } from "../../src/app/sink-commands.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";
import { openedStore, startDatabases, urlOf } from "../kit/effects-databases.ts";

test("a sink with --with-person rejects another installation's effects database", async () => {
  const databases = await startDatabases("SQLite");
  onTestFinished(() => databases.remove());
  const place = await databases.newDatabase();
  const store = await openedStore(place);
  onTestFinished(() => store.close());
  const withPeopleAt = async (effectsUrl: string) => {
    const read = readConfig({ PENSTOCK_EFFECTS_URL: effectsUrl }, {});
    if (!read.ok) throw new Error(read.faults.join());
    return await peopleOf(read.config, { withPerson: true });
  };
  const nobodys = await withPeopleAt(urlOf(place));
  await nobodys?.close();
  await store.bindTo("another");
  await expect(withPeopleAt(urlOf(place))).rejects.toThrow("PENSTOCK_SUBJECT_PREFIX=another");
  const away = await withPeopleAt("postgres://user@127.0.0.1:1/none");
  await away?.close();
});
