// A fault scenario of the effects: events in the streams, a fault while they are applied, and at
// the end the dump of an undisturbed run.

import type { NatsConnection } from "@nats-io/nats-core";
import type { TestClickHouse } from "../../kit/clickhouse.ts";
import type { DatabaseKind, EffectsDatabases } from "../../kit/effects-databases.ts";
import type { TestNatsServer } from "../../kit/nats-server.ts";
import type { Random } from "../random.ts";

export interface EffectsContext {
  readonly form: "short" | "full";
  readonly databases: EffectsDatabases;
  /** The server, if the run uses one. */
  readonly clickhouse: TestClickHouse | undefined;
  /** `parquet:` and a folder that does not exist yet, if the run uses one. */
  readonly parquet: string | undefined;
  readonly nats: TestNatsServer;
  /** Reconnects by itself when the server returns. */
  readonly connection: NatsConnection;
  readonly random: Random;
  note(text: string): void;
}

/** The environment of a scenario. */
export type TargetKind = DatabaseKind | "ClickHouse" | "Parquet files";

const kinds: readonly DatabaseKind[] = ["SQLite", "PostgreSQL"];

export function databasesOf({ databases = kinds }: EffectsScenario): readonly TargetKind[] {
  return databases;
}

export interface EffectsScenario {
  /** In kebab-case; begins with `effects-`, or with `sink-` for a sink scenario. */
  readonly name: string;
  readonly title: string;
  /** The databases on which it runs; default: each kind. */
  readonly databases?: readonly TargetKind[];
  /** The streams exist and are empty. Returns the broken promises. */
  run(context: EffectsContext): Promise<readonly string[]>;
}

export interface EffectsResult {
  readonly scenario: string;
  readonly database: TargetKind;
  readonly natsVersion: string;
  readonly seconds: number;
  /** The broken promises; empty if all held. */
  readonly faults: readonly string[];
  readonly notes: readonly string[];
}
