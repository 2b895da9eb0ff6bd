// Removes persons from PostgreSQL. It does not need the writer's lock, because a running writer
// detects the changed commit number and starts again.

import type { Client } from "pg";
import { type PostgresAddress, readAddress } from "../../../../platform/postgres/address.ts";
import { connect } from "../../../../platform/postgres/connect.ts";
import { storeErrorOf } from "../../../../platform/postgres/faults.ts";
import { selectRows } from "../../../../platform/postgres/select-rows.ts";
import {
  type ErasedPeople,
  type ErasedProject,
  type ErasingSql,
  eraseProjectRows,
  eraseRows,
  hasProjectRows,
  idsOfPersons,
  type PeopleErasure,
} from "../erase-rows.ts";
import { hints, requireVersion, schemaName } from "./migrate.ts";

const statementMsMax = 600_000;
const name = "penstock erase";

export class PostgresErasure implements PeopleErasure {
  readonly #address: PostgresAddress;

  constructor({ url }: { readonly url: string }) {
    this.#address = readAddress(url);
  }

  idsOf(projectId: string, ids: readonly string[]): Promise<string[]> {
    return this.#run("read people", (client) => idsOfPersons(sqlOf(client), projectId, ids));
  }

  hasProject(projectId: string): Promise<boolean> {
    return this.#run("read a project", (client) => hasProjectRows(sqlOf(client), projectId));
  }

  erase(projectId: string, ids: readonly string[]): Promise<ErasedPeople> {
    return this.#write("erase people", (client) => eraseRows(sqlOf(client), projectId, ids));
  }

  eraseProject(projectId: string): Promise<ErasedProject> {
    return this.#write("erase a project", (client) => eraseProjectRows(sqlOf(client), projectId));
  }

  #write<Result>(doing: string, work: (client: Client) => Promise<Result>) {
    return this.#run(doing, async (client) => {
      await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
      const erased = await work(client);
      await client.query("COMMIT");
      const { shown } = this.#address;
      const remains = `dead rows in PostgreSQL at ${shown}, until a VACUUM; its log of changes, until it is recycled`;
      return { ...erased, remains: [remains] };
    });
  }

  async #run<Result>(doing: string, work: (client: Client) => Promise<Result>): Promise<Result> {
    const { shown } = this.#address;
    let client: Client | undefined;
    try {
      client = await connect(this.#address, { name, statementMsMax, schema: schemaName });
      await requireVersion(client, shown);
      return await work(client);
    } catch (error) {
      throw storeErrorOf(error, { doing, shown, hints });
    } finally {
      await client?.end().catch(() => {});
    }
  }
}

function sqlOf(client: Client): ErasingSql {
  return {
    textType: 'text COLLATE "C"',
    uuid: (parameter) => `${parameter}::uuid`,
    run: async (sql, values = []) => (await client.query(sql, [...values])).rowCount ?? 0,
    all: (sql, values = []) => selectRows(client, sql, [...values]),
  };
}
