import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach } from "vitest";
import { PostgresTarget } from "../../../../src/readers/sinks/postgres/postgres-target.ts";
import { natsServerForFile, postgresForFile } from "../../../kit/for-file.ts";
import { asked } from "../../../kit/postgres-rows.ts";
import { sinkSchema as schema } from "../../../kit/sink-events.ts";
import { makeStreams } from "../../../kit/stored-events.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";
import { deleteStreams } from "../../effects/writer/writer-kit.ts";
import { positionTests } from "../suite-positions.ts";
import { streamTests } from "../suite-streams.ts";

const nats = await natsServerForFile();
const postgres = await postgresForFile();
const connection = await connect({ servers: nats.url });
afterAll(() => connection.close());

beforeEach(async () => {
  await deleteStreams(connection, nats);
  await makeStreams(connection);
});

positionTests(async () => {
  const url = await newDatabase(postgres);
  return () => new PostgresTarget({ url, schema });
});

streamTests(connection, async () => {
  const url = await newDatabase(postgres);
  const column = async (name: string, table: string) =>
    (await asked(url, `SELECT ${name} FROM ${schema}.${table}`)).map((row) => row[name]);
  return {
    target: () => new PostgresTarget({ url, schema }),
    uuids: async () => (await column("uuid", "events")).map(String),
    kinds: () => column("kind", "incidents"),
  };
});
