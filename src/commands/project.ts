// The `project` commands as a person sees them: arguments in, lines out. What they do is in projects/commands.ts.

import type { NatsConnection } from "@nats-io/nats-core";
import type { Config } from "../config.ts";
import type { BucketPlace } from "../projects/bucket.ts";
import { addProject, listProjects, rotateKey, setEnabled } from "../projects/commands.ts";
import type { Project } from "../types.ts";
import type { CommandContext } from "./context.ts";
import { findNats, openNats } from "./nats.ts";

export interface ProjectCommand {
  readonly config: Config;
  readonly context: CommandContext;
}

export interface NewProject {
  readonly id: string;
  readonly name: string | undefined;
  readonly key: string | undefined;
}

export async function add(command: ProjectCommand, project: NewProject): Promise<void> {
  const added = await atNats(command, (connection, place) => addProject(connection, { ...place, ...project }));
  say(command, `project ${added.id} added, key ${added.keys[0]}`);
}

export async function list(command: ProjectCommand, asJson: boolean): Promise<void> {
  const projects = await atNats(command, listProjects);
  if (asJson) say(command, JSON.stringify(projects, undefined, 2));
  else if (projects.length === 0) say(command, "no projects yet: add one with `penstock project add <id>`");
  else for (const line of table(projects)) say(command, line);
}

export async function rotate(command: ProjectCommand, id: string, keepOld: boolean): Promise<void> {
  const rotated = await atNats(command, (connection, place) => rotateKey(connection, { ...place, id, keepOld }));
  const others = rotated.keys.length - 1;
  const kept = others === 0 ? "" : `; ${others} older ${others === 1 ? "key stays" : "keys stay"} valid`;
  say(command, `project ${id} has a new key ${rotated.keys.at(-1)}${kept}`);
}

export async function enable(command: ProjectCommand, id: string, enabled: boolean): Promise<void> {
  await atNats(command, (connection, place) => setEnabled(connection, { ...place, id, enabled }));
  say(command, `project ${id} ${enabled ? "enabled" : "disabled"}`);
}

async function atNats<T>(
  { config, context }: ProjectCommand,
  work: (connection: NatsConnection, place: BucketPlace) => Promise<T>,
): Promise<T> {
  const connection = await openNats(findNats(config, context.host));
  try {
    return await work(connection, { prefix: config.subjectPrefix, replicas: config.replicas });
  } finally {
    await connection.close();
  }
}

function say({ context }: ProjectCommand, line: string): void {
  context.stdout.write(`${line}\n`);
}

function table(projects: readonly Project[]): string[] {
  const rows = [
    ["ID", "STATE", "KEYS", "NAME"],
    ...projects.map(({ id, enabled, keys, name }) => [id, enabled ? "enabled" : "disabled", keys.join(","), name]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
