import { connect } from "node:net";
import { tryListen } from "../../platform/base/http-port.ts";
import { get } from "../../platform/base/http-request.ts";
import { objectIn } from "../../platform/base/json.ts";
import { connectable, reachable } from "../../platform/base/own-host.ts";
import { type Exposure, exposureOf, type Sign, tokensOf } from "../../platform/base/port-access.ts";
import {
  type Instance,
  instanceIn,
  isSameInstance,
  shownInstance,
} from "../../platform/nats/instance.ts";
import type { Config } from "../../platform/settings/config.ts";
import { reportedStatus } from "../../readers/effects/http/client.ts";
import { counted } from "../terminal.ts";
import { checkOf, type Finding, shownList } from "./finding.ts";

interface PortQuestion {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  /** Authorizes requests to the port, if it needs a token. */
  readonly sign?: Sign;
}

interface PortCheck {
  readonly name: string;
  readonly setting: string;
  readonly usualHost: string;
}

const publicPort = { name: "public port", setting: "PENSTOCK", usualHost: "0.0.0.0" };
const effectsPort = { name: "effects port", setting: "PENSTOCK_EFFECTS", usualHost: "127.0.0.1" };
const adminPort = { name: "admin port", setting: "PENSTOCK_ADMIN", usualHost: "127.0.0.1" };

type Reach = "open" | "closed" | "silent";

const anyAddress = new Set(["0.0.0.0", "::", "127.0.0.1", "::1", "localhost"]);
const unprivilegedLeast = 1_024;

/** Checks a port. Only the admin port (`admin`) returns the name of its installation. */
export async function checkPublicPort(
  question: PortQuestion & { isTls: boolean },
  admin: AdminPort,
): Promise<Finding> {
  const check = checkOf(publicPort.name);
  const unused = await unusedPort(question, publicPort);
  if (unused !== undefined) return unused;
  const { port } = question;
  // The request is for `/`, because a request for an unknown path would count as a client error.
  const answer = await answerOf({ ...question, path: "/" });
  if (answer?.status !== 200 || !answer.body.includes("<title>Penstock</title>"))
    return taken(publicPort, port, answer);
  const who = `a Penstock already responds on ${port}`;
  if (admin.publicPort === port)
    return admin.other === undefined ? check.ok(who) : otherOne(publicPort, port, admin.other);
  return check.warn(
    `${who}, but it may not be the gateway of these settings: the admin port does not report ${port}`,
    `set PENSTOCK_ADMIN_PORT to the admin port of the gateway on ${port}, or PENSTOCK_PORT to another port`,
  );
}

type Mine = () => Promise<Instance>;

interface AdminPort {
  readonly publicPort: number | undefined;
  readonly other: string | undefined;
  readonly finding: Finding;
}

export async function checkAdminPort(question: PortQuestion, mine: Mine): Promise<AdminPort> {
  const noResponse = { publicPort: undefined, other: undefined };
  const unused = await unusedPort(question, adminPort);
  if (unused !== undefined) return { ...noResponse, finding: unused };
  const { port } = question;
  const live = await answerOf({ ...question, path: "/livez" });
  if (fieldOf(live?.body, "status") !== "alive")
    return { ...noResponse, finding: taken(adminPort, port, live) };
  const hidden = await otherTokens(question, adminPort, live);
  if (hidden !== undefined) return { ...noResponse, finding: hidden };
  const publicPort = Number(fieldOf(live?.body, "public_port"));
  const other = await otherThan(mine, live?.body);
  if (other !== undefined) return { publicPort, other, finding: otherOne(adminPort, port, other) };
  const fault = await unready(question, adminPort, `a Penstock responds on ${port}`);
  const ready = checkOf(adminPort.name).ok(`a Penstock already responds on ${port}, and is ready`);
  return { publicPort, other, finding: fault ?? ready };
}

const unnamed = "unnamed";

async function otherThan(mine: Mine, body: string | undefined): Promise<string | undefined> {
  const found = instanceIn(fieldOf(body, "instance"));
  if (found === undefined) return unnamed;
  return isSameInstance(await mine(), found) ? undefined : shownInstance(found);
}

async function otherTokens(
  question: PortQuestion,
  { name }: PortCheck,
  live: Answer | undefined,
): Promise<Finding | undefined> {
  if (fieldOf(live?.body, "instance") !== undefined) return undefined;
  if ((await answerOf({ ...question, path: "/metrics" }))?.status !== 401) return undefined;
  return checkOf(name).warn(
    `a Penstock responds on ${question.port}, and does not accept the token of these settings`,
    "run doctor with the PENSTOCK_ADMIN_TOKEN or PENSTOCK_READ_TOKEN of that process, on a host whose clock differs by less than a minute",
  );
}

const portHosts = [
  ["admin port", "adminHost"],
  ["effects port", "effectsHost"],
  ["sink port", "sinkHost"],
] as const;

export function checkTokens(config: Config): Finding[] {
  const check = checkOf("tokens");
  const of = (exposure: Exposure) =>
    portHosts
      .filter(([, host]) => exposureOf(config[host], config) === exposure)
      .map(([name, host]) => `the ${name} on ${config[host]}`);
  const [open, lacking] = [of("open"), of("lacks token")];
  const fix = "set PENSTOCK_ADMIN_TOKEN or PENSTOCK_ADMIN_TOKEN_FILE";
  if (lacking.length > 0)
    return [
      check.fail(
        `${lacking.join(" and ")} would be open to other hosts without a token: the process does not start`,
        `${fix}; or PENSTOCK_ADMIN_AUTH=off if the network protects the port`,
      ),
    ];
  if (open.length > 0)
    return [
      check.warn(
        `${open.join(" and ")} needs no token (PENSTOCK_ADMIN_AUTH=off): anyone who can reach it can read it`,
        `${fix}, and remove PENSTOCK_ADMIN_AUTH`,
      ),
    ];
  const { admin, read } = tokensOf(config);
  return [
    check.ok(
      admin.length + read.length > 0
        ? "the ports of gateway, effects and sink need a token"
        : "none needed: the ports of gateway, effects and sink are on loopback",
    ),
  ];
}

function otherOne({ name, setting }: PortCheck, port: number, other: string): Finding {
  if (other === unnamed) {
    return checkOf(name).warn(
      `${port} is taken by an older Penstock, which does not report its installation`,
      "upgrade and restart that Penstock, then run doctor again",
    );
  }
  return checkOf(name).fail(
    `${port} is taken by a Penstock of another installation: ${other}`,
    `set ${setting}_PORT to another port, or run doctor with the settings of that installation`,
  );
}

async function unready(
  question: PortQuestion,
  { name }: PortCheck,
  who: string,
): Promise<Finding | undefined> {
  const ready = await answerOf({ ...question, path: "/readyz" });
  if (ready?.status === 200) return undefined;
  const reasons = fieldOf(ready?.body, "reasons");
  const why = Array.isArray(reasons) ? shownList(reasons.map(String)) : "no reason is reported";
  return checkOf(name).fail(
    `${who} and is not ready: ${why}`,
    "see the other findings, and the log of the gateway",
  );
}

async function unusedPort(
  { host, port, timeoutMs }: PortQuestion,
  { name, setting, usualHost }: PortCheck,
): Promise<Finding | undefined> {
  const check = checkOf(name);
  if (port === 0) return check.ok("any free port");
  if (port < unprivilegedLeast || !anyAddress.has(host)) {
    const fault = await tryListen(host, port).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code,
    );
    if (fault === "EADDRNOTAVAIL" || fault === "ENOTFOUND")
      return check.fail(
        `${host} is not an address of this machine`,
        `${setting}_HOST=${usualHost}`,
      );
    if (fault === "EACCES") {
      const fix =
        "use a port of at least 1024, or AmbientCapabilities=CAP_NET_BIND_SERVICE in systemd";
      return check.fail(`this user may not listen on ${port}`, fix);
    }
  }
  return (await reach(connectable(host), port, timeoutMs)) === "closed"
    ? check.ok(`${port} is free`)
    : undefined;
}

function taken({ name, setting }: PortCheck, port: number, answer: Answer | undefined): Finding {
  const who =
    answer === undefined
      ? "a program that accepts connections and does not respond"
      : "a program that is not Penstock";
  return checkOf(name).fail(
    `${port} is taken by ${who}`,
    `find it with \`ss -ltnp sport = :${port}\` and stop it, or set ${setting}_PORT to another port`,
  );
}

function reach(host: string, port: number, timeoutMs: number): Promise<Reach> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const end = (outcome: Reach): void => {
      socket.destroy();
      resolve(outcome);
    };
    socket.once("connect", () => end("open"));
    socket.once("error", () => end("closed"));
    socket.once("timeout", () => end("silent"));
  });
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

const bodyBytesMax = 65_536;

async function answerOf({
  host,
  port,
  path,
  isTls = false,
  timeoutMs,
  sign,
}: PortQuestion & { path: string; isTls?: boolean }): Promise<Answer | undefined> {
  const scheme = isTls ? "https" : "http";
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const target = new URL(`${scheme}://${reachable(host)}:${port}${path}`);
    const headers = { ...sign?.(target) };
    const options = { headers, signal, rejectUnauthorized: false, bytesMax: bodyBytesMax };
    const { status, body } = await get(target, options);
    return { status, body: body.toString("utf8") };
  } catch {
    return undefined;
  }
}

function fieldOf(body: string | undefined, name: string): unknown {
  return objectIn(body ?? "")?.[name];
}

/** Maximum normal lag in seconds. If the lag is longer, the effects process is down or too slow. */
export const lagSecondsMax = 60;

export async function checkEffectsPort(question: PortQuestion, mine: Mine): Promise<Finding> {
  const check = checkOf(effectsPort.name);
  const unused = await unusedPort(question, effectsPort);
  if (unused !== undefined) return unused;
  const { port } = question;
  const ask = (path: string) => answerOf({ ...question, path });
  const live = await ask("/livez");
  if (fieldOf(live?.body, "status") !== "alive") return taken(effectsPort, port, live);
  const hidden = await otherTokens(question, effectsPort, live);
  if (hidden !== undefined) return hidden;
  const other = await otherThan(mine, live?.body);
  if (other !== undefined) return otherOne(effectsPort, port, other);
  const who = `a \`penstock effects\` responds on ${port}`;
  const fault = await unready(question, effectsPort, who);
  if (fault !== undefined) return fault;
  const answer = await ask("/status");
  const status = answer?.status === 200 ? reportedStatus(answer.body) : undefined;
  if (status === undefined)
    return check.fail(`${who} but does not report its position`, "see its log");
  const { state, totals, lag } = status;
  const trouble = `${counted(totals.incidents, "incident")}, ${totals.rejected} rejected`;
  if (!lag.isKnown) return check.warn(`${who}, and its lag is unknown; ${trouble}`, "see its log");
  const found = `${who}: ${state}, lag ${counted(lag.messages, "message")}, ${trouble}`;
  if (lag.seconds < lagSecondsMax) return check.ok(found);
  return check.warn(
    `${found}; the oldest is ${Math.round(lag.seconds)} s old`,
    "if the process was down, wait; otherwise see `penstock effects status` and the log of the process",
  );
}

interface UpstreamOptions {
  readonly url: string | undefined;
  readonly timeoutMs: number;
}

/** Checks the upstream with a request for a script. Returns no finding without an upstream. */
export async function checkUpstream({ url, timeoutMs }: UpstreamOptions): Promise<Finding[]> {
  if (url === undefined) return [];
  const check = checkOf("upstream");
  const fix = "set PENSTOCK_UPSTREAM_URL to the URL of PostHog, or unset it";
  const away =
    "flags and configuration are served from the cache, or rejected with 503; events are stored";
  try {
    const response = await fetch(`${url}/static/array.js`, {
      method: "HEAD",
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
    });
    const { status } = response;
    if (status >= 500) return [check.warn(`${url} responds with ${status}: ${away}`, fix)];
    const script = status === 200 ? "" : ` (${status} for /static/array.js)`;
    return [check.ok(`${url} responds${script}`)];
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? cause.message || message : message;
    return [check.warn(`${url} does not respond (${reason}): ${away}`, fix)];
  }
}
