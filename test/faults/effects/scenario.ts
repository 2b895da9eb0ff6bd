// What a fault scenario of the effects is: events in the streams, something that goes wrong while
// they are applied, and in the end the dump of an undisturbed run.

import type { NatsConnection } from "@nats-io/nats-core";
import type { TestClickHouse } from "../../kit/clickhouse.ts";
import type { DatabaseKind, EffectsDatabases } from "../../kit/effects-databases.ts";
import type { TestNatsServer } from "../../kit/nats-server.ts";
import type { Random } from "../random.ts";

export interface EffectsContext {
  readonly form: "short" | "full";
  readonly databases: EffectsDatabases;
  /** The server, where the run is on one. */
  readonly clickhouse: TestClickHouse | undefined;
  /** `parquet:` and a folder that is not there yet, where the run is on one. */
  readonly parquet: string | undefined;
  readonly nats: TestNatsServer;
  /** Comes back by itself when the server does. */
  readonly connection: NatsConnection;
  readonly random: Random;
  note(text: string): void;
}

/** What a scenario is run on. */
export type TargetKind = DatabaseKind | "ClickHouse" | "Parquet files";

const kinds: readonly DatabaseKind[] = ["SQLite", "PostgreSQL"];

export function databasesOf({ databases = kinds }: EffectsScenario): readonly TargetKind[] {
  return databases;
}

export interface EffectsScenario {
  /** In kebab-case; begins with `effects-`, or with `sink-` where it is about a sink. */
  readonly name: string;
  readonly title: string;
  /** On which it is run; default: on each kind. */
  readonly databases?: readonly TargetKind[];
  /** The streams are there, and empty. Gives what broke a promise. */
  run(context: EffectsContext): Promise<readonly string[]>;
}

export interface EffectsResult {
  readonly scenario: string;
  readonly database: TargetKind;
  readonly natsVersion: string;
  readonly seconds: number;
  /** What broke a promise; empty when all held. */
  readonly faults: readonly string[];
  readonly notes: readonly string[];
}
