// Asks the process of the effects how it is, where one answers on the port of the settings. None is
// needed, so a port that is free is well. What the database says is another check's.

import { totalLag } from "../../readers/effects/streams/lag.ts";
import { counted } from "../terminal.ts";
import { checkOf, type Finding, shownList } from "./finding.ts";
import {
  fieldOf,
  get,
  type Mine,
  otherOne,
  otherThan,
  type PortCheck,
  type PortQuestion,
  taken,
  unusedPort,
} from "./ports.ts";

const effectsPort: PortCheck = {
  ...{ name: "effects port", portSetting: "PENSTOCK_EFFECTS_PORT" },
  ...{ hostSetting: "PENSTOCK_EFFECTS_HOST", usualHost: "127.0.0.1" },
};
/** A process that works is seconds behind; beyond it, it is down or cannot keep up. */
export const lagSecondsMax = 60;

export async function checkEffectsPort(question: PortQuestion, mine: Mine): Promise<Finding> {
  const check = checkOf(effectsPort.name);
  const unused = await unusedPort(question, effectsPort);
  if (unused !== undefined) return unused;
  const { port } = question;
  const ask = (path: string) => get({ ...question, path, isTls: false });
  const live = await ask("/livez");
  if (fieldOf(live?.body, "status") !== "alive") return taken(effectsPort, port, live);
  const other = await otherThan(mine, live?.body);
  if (other !== undefined) return otherOne(effectsPort, port, other);
  const ready = await ask("/readyz");
  const who = `a \`penstock effects\` answers on ${port}`;
  if (ready?.status !== 200) {
    const reasons = fieldOf(ready?.body, "reasons");
    const why = Array.isArray(reasons) ? shownList(reasons.map(String)) : "it does not say why";
    return check.fail(`${who} and is not ready: ${why}`, "see the other lines here, and its log");
  }
  const status = await ask("/status");
  if (status?.status !== 200)
    return check.fail(`${who} and does not say what it has applied`, "see its log");
  const { state, messages, seconds, incidents, rejected } = appliedOf(status.body);
  const trouble = `${counted(incidents, "incident")}, ${rejected} rejected`;
  if (messages === undefined)
    return check.warn(`${who}, and does not know how far it is behind; ${trouble}`, "see its log");
  const found = `${who}: ${state}, ${counted(messages, "message")} behind, ${trouble}`;
  if (seconds < lagSecondsMax) return check.ok(found);
  return check.warn(
    `${found}; the oldest has waited for ${Math.round(seconds)} s`,
    "wait if it was down; else see `penstock effects status` and its log",
  );
}

interface Applied {
  readonly state: string;
  /** Undefined: of some stream it is not known. */
  readonly messages: number | undefined;
  readonly seconds: number;
  readonly incidents: number;
  readonly rejected: number;
}

/** What /status says; what is not there counts as nothing. */
function appliedOf(body: string): Applied {
  const streams = (fieldOf(body, "streams") ?? []) as readonly {
    readonly lag_messages?: number | null;
    readonly lag_seconds?: number | null;
  }[];
  const totals = (fieldOf(body, "totals") ?? {}) as { incidents?: number; rejected?: number };
  const lag = totalLag(
    streams.map((one) => ({
      messages: one.lag_messages ?? undefined,
      seconds: one.lag_seconds ?? undefined,
    })),
  );
  return {
    state: String(fieldOf(body, "state")),
    messages: lag.isKnown ? lag.messages : undefined,
    seconds: lag.seconds,
    incidents: Number(totals.incidents ?? 0),
    rejected: Number(totals.rejected ?? 0),
  };
}
