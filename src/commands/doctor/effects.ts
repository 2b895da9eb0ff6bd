// Checks the database of the effects. The effects are optional, so a missing database is not a
// problem.

import { accessSync, constants } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/nats-core";
import { StoreError } from "../../platform/base/store-error.ts";
import { managerOf, streamInfoOf } from "../../platform/nats/api.ts";
import type { Config } from "../../platform/settings/config.ts";
import { requireInstallation } from "../../readers/effects/store/installation.ts";
import {
  type OpenReader,
  readerAt,
  type StorePlace,
  shownPlace,
  storePlace,
} from "../../readers/effects/store/open.ts";
import type { Totals } from "../../readers/effects/store/port.ts";
import { NewerTablesError, OlderTablesError } from "../../readers/effects/store/rows/schema.ts";
import { isAbsent } from "../../readers/effects/store/sqlite/file-access.ts";
import { lagOf, type StreamStatus, streamStatuses } from "../../readers/effects/streams/lag.ts";
import type { Position } from "../../readers/effects/types.ts";
import type { CommandContext, ConfiguredCommand } from "../context.ts";
import { withNats } from "../nats.ts";
import { counted } from "../terminal.ts";
import { checkOf, type Finding } from "./finding.ts";
import { lagSecondsMax } from "./ports.ts";

const databaseTimeoutMs = 5_000;
const check = checkOf("effects");

export async function checkEffects(config: Config, context: CommandContext): Promise<Finding[]> {
  const place = storePlace(config);
  if (place.kind === "sqlite" && isAbsent(place.file))
    return [check.ok(`no database yet: \`penstock effects\` creates ${place.file}`)];
  try {
    const reader = await readerAt(place);
    try {
      return await checkDatabase(reader, place, { config, context });
    } finally {
      await reader.close();
    }
  } catch (error) {
    if (error instanceof OlderTablesError)
      return [
        check.warn(
          `an older release wrote ${shownPlace(place)}`,
          "back it up: the first start of `penstock effects` of this release upgrades it, and an older release cannot read it afterwards",
        ),
      ];
    if (error instanceof NewerTablesError)
      return [
        check.fail(
          `a newer release wrote ${shownPlace(place)}`,
          "use that release or a newer one, or restore a backup of the database from before its upgrade",
        ),
      ];
    const found = error instanceof StoreError ? "" : `${shownPlace(place)}: `;
    return [check.fail(`${found}${(error as Error).message}`, "PENSTOCK_EFFECTS_URL")];
  }
}

async function checkDatabase(
  reader: OpenReader,
  place: StorePlace,
  command: ConfiguredCommand,
): Promise<Finding[]> {
  const { subjectPrefix: prefix } = command.config;
  const shown = shownPlace(place);
  const asked = Promise.all([
    reader.totals(),
    reader.positions(),
    requireInstallation(reader, { prefix, shown }),
  ]);
  const late = delay(databaseTimeoutMs, undefined, { ref: false });
  const answer = await Promise.race([asked, late]);
  if (answer === undefined) {
    const found = `${shown} does not respond within ${databaseTimeoutMs / 1_000} s`;
    return [
      check.fail(found, "check the database, or set PENSTOCK_EFFECTS_URL to another database"),
    ];
  }
  const [totals, applied] = answer;
  const streams = await withNats(command, (connection) =>
    streamsOf(connection, applied, prefix),
  ).catch((error: Error) => error);
  const foreign = streams instanceof Error ? [] : streams.foreign;
  if (foreign.length > 0)
    return [
      check.warn(
        `${shown} was built from other streams (of another NATS, or recreated since): ${foreign.join(", ")}`,
        "set PENSTOCK_EFFECTS_URL (or PENSTOCK_DATA_DIR) to the database of this NATS",
      ),
      ...checkTrouble(totals),
    ];
  const fault = place.kind === "sqlite" ? unwritable(place.file) : undefined;
  const { persons, groups } = totals;
  return [
    fault === undefined
      ? check.ok(`${shown}: ${counted(persons, "person")}, ${counted(groups, "group")}`)
      : check.fail(
          `${fault} cannot be written by this user`,
          "run doctor as the user who runs `penstock effects`",
        ),
    streams instanceof Error ? unknownLag(streams) : checkLag(streams.statuses),
    ...checkTrouble(totals),
  ];
}

/** Returns the first path without write access. SQLite writes to the file and to its folder. */
function unwritable(file: string): string | undefined {
  return [file, path.dirname(file)].find((one) => {
    try {
      accessSync(one, constants.W_OK);
      return false;
    } catch {
      return true;
    }
  });
}

interface Streams {
  readonly foreign: readonly string[];
  readonly statuses: readonly StreamStatus[];
}

async function streamsOf(
  connection: NatsConnection,
  applied: readonly Position[],
  prefix: string,
): Promise<Streams> {
  const manager = await managerOf(connection, { timeoutMs: databaseTimeoutMs });
  const foreign: string[] = [];
  for (const { stream, created, sequence } of applied) {
    if (sequence === 0) continue;
    const info = await streamInfoOf(manager, stream);
    if (Date.parse(info?.created ?? "") !== Date.parse(created)) foreign.push(stream);
  }
  const statuses =
    foreign.length > 0
      ? []
      : await streamStatuses(connection, { prefix, applied, nowMs: Date.now() });
  return { foreign, statuses };
}

const lag = checkOf("effects lag");

function unknownLag({ message }: Error): Finding {
  return lag.warn(`unknown: ${message}`, "fix the connection to NATS, then run doctor again");
}

function checkLag(streams: readonly StreamStatus[]): Finding {
  const { messages, seconds } = lagOf(streams);
  const worst = streams.find(({ lagSeconds }) => lagSeconds === seconds);
  if (worst !== undefined && seconds >= lagSecondsMax)
    return lag.warn(
      `not applied: ${counted(messages, "message")}; the oldest of ${worst.stream} is ${Math.round(seconds)} s old`,
      "start `penstock effects`, or see its log and /status",
    );
  return lag.ok(
    messages === 0 ? "all events are applied" : `lag ${counted(messages, "message")}, catching up`,
  );
}

function checkTrouble({ incidents, rejected }: Totals): Finding[] {
  const seeThem = "`penstock effects status` lists the latest";
  const found: Finding[] = [];
  if (incidents > 0)
    found.push(
      checkOf("effects loss").warn(`${counted(incidents, "incident")} with streams`, seeThem),
    );
  if (rejected > 0)
    found.push(
      checkOf("rejected").warn(
        `${counted(rejected, "part")} of events could not be applied`,
        seeThem,
      ),
    );
  return found;
}
