// A fault scenario of the effects: a fault occurs while events are applied, and the final data must
// equal that of an undisturbed run.

import type { NatsConnection } from "@nats-io/nats-core";
import type { TestClickHouse } from "../../kit/clickhouse.ts";
import type { DatabaseKind, EffectsDatabases } from "../../kit/effects-databases.ts";
import type { TestNatsServer } from "../../kit/nats-server.ts";
import type { Random } from "../random.ts";

export interface EffectsContext {
  readonly form: "short" | "full";
  readonly databases: EffectsDatabases;
  readonly clickhouse: TestClickHouse | undefined;
  readonly parquet: string | undefined;
  readonly nats: TestNatsServer;
  readonly connection: NatsConnection;
  readonly random: Random;
  note(text: string): void;
}

export type TargetKind = DatabaseKind | "ClickHouse" | "Parquet files";

const kinds: readonly DatabaseKind[] = ["SQLite", "PostgreSQL"];

export function databasesOf({ databases = kinds }: EffectsScenario): readonly TargetKind[] {
  return databases;
}

export interface EffectsScenario {
  readonly name: string;
  readonly title: string;
  readonly databases?: readonly TargetKind[];
  run(context: EffectsContext): Promise<readonly string[]>;
}

export interface EffectsResult {
  readonly scenario: string;
  readonly database: TargetKind;
  readonly natsVersion: string;
  readonly seconds: number;
  readonly faults: readonly string[];
  readonly notes: readonly string[];
}
