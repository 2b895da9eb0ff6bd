// The effects process is optional, so a free port is no problem.

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
/** A running process lags by seconds. With a longer lag it is down, or too slow. */
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
  const who = `a \`penstock effects\` responds on ${port}`;
  if (ready?.status !== 200) {
    const reasons = fieldOf(ready?.body, "reasons");
    const why = Array.isArray(reasons) ? shownList(reasons.map(String)) : "it gives no reason";
    return check.fail(`${who} and is not ready: ${why}`, "see the other findings, and its log");
  }
  const status = await ask("/status");
  if (status?.status !== 200)
    return check.fail(`${who} but does not report what it has applied`, "see its log");
  const { state, messages, seconds, incidents, rejected } = appliedOf(status.body);
  const trouble = `${counted(incidents, "incident")}, ${rejected} rejected`;
  if (messages === undefined)
    return check.warn(`${who}, and its lag is unknown; ${trouble}`, "see its log");
  const found = `${who}: ${state}, lag ${counted(messages, "message")}, ${trouble}`;
  if (seconds < lagSecondsMax) return check.ok(found);
  return check.warn(
    `${found}; the oldest is ${Math.round(seconds)} s old`,
    "wait if it was down; otherwise see `penstock effects status` and its log",
  );
}

interface Applied {
  readonly state: string;
  /** Undefined if the lag of any stream is unknown. */
  readonly messages: number | undefined;
  readonly seconds: number;
  readonly incidents: number;
  readonly rejected: number;
}

/** Missing fields count as 0. */
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
