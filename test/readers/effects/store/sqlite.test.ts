import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import type { StoreRig } from "./store-rig.ts";
import { storeSuite } from "./store-suite.ts";

async function openStore(): Promise<StoreRig> {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-effects-"));
  const file = path.join(folder, "effects.db");
  const stores: SqliteStore[] = [];
  function another(): SqliteStore {
    const store = new SqliteStore({ file });
    stores.push(store);
    return store;
  }
  const store = another();
  await store.open();
  return {
    store,
    another,
    deleteAll: async (table) => {
      const database = new DatabaseSync(file);
      database.exec(`DELETE FROM ${table}`);
      database.close();
    },
    end: async () => {
      for (const one of stores) await one.close();
      rmSync(folder, { recursive: true });
    },
  };
}

storeSuite("SQLite", openStore);
