// The command line of the load test, and the resulting plan. The target must be this machine,
// unless the caller confirms owning another target.

import { isIP } from "node:net";
import { Command, InvalidArgumentError, Option } from "commander";
import { eventBytesMin } from "./bodies.ts";
import { newUuidPrefix, type Plan, requestsTotal } from "./plan.ts";

export interface LoadOptions {
  readonly plan: Plan;
  readonly natsUrl: string | undefined;
  readonly natsToken: string | undefined;
  readonly natsCreds: string | undefined;
  readonly natsCa: string | undefined;
  readonly natsCert: string | undefined;
  readonly natsKey: string | undefined;
  readonly dataDir: string | undefined;
  readonly subjectPrefix: string;
  readonly p99MsMax: number | undefined;
  readonly json: boolean;
}

export class UsageError extends Error {}

const eventsCheckedMax = 500_000_000;
const threadsMax = 64;
const connectionsMax = 10_000;
const backlogSecondsDefault = 5;
const backlogMaxMin = 1_000;
const backlogMaxMax = 10_000_000;

interface Flags {
  readonly url: URL;
  readonly key: string;
  readonly rate: number;
  readonly duration: number;
  readonly warmUp: number;
  readonly connections: number;
  readonly batch: number;
  readonly eventBytes: number;
  readonly gzip: boolean;
  readonly threads: number;
  readonly backlog?: number;
  readonly timeout: number;
  readonly grace: number;
  readonly retry: boolean;
  readonly p99Ms?: number;
  readonly natsUrl?: string;
  readonly natsToken?: string;
  readonly natsCreds?: string;
  readonly natsCa?: string;
  readonly natsCert?: string;
  readonly natsKey?: string;
  readonly dataDir?: string;
  readonly subjectPrefix: string;
  readonly json: boolean;
  readonly yesIOwnThis: boolean;
}

export function commandLine(): Command {
  return new Command("npm run load --")
    .description(
      "Sends events at a fixed rate, measures from when each request was due, and checks that what was acknowledged is stored.",
    )
    .option("--url <url>", "the gateway", toUrl, new URL("http://127.0.0.1:8000"))
    .option("--key <key>", "the API key of the project to send to", "phc_demo")
    .option("--rate <events>", "events per second, whatever the gateway does", positive, 1_000)
    .option("--duration <seconds>", "duration of sending", positive, 10)
    .option(
      "--warm-up <seconds>",
      "time of sending before that, not counted in the latencies; 0 for none",
      zeroOrMore,
      5,
    )
    .option(
      "--connections <count>",
      "maximum number of requests in flight",
      wholeUpTo(connectionsMax),
      64,
    )
    .option(
      "--batch <events>",
      "events in a request; 1 posts to /capture/, more to /batch/",
      wholeUpTo(1_000_000),
      1,
    )
    .option(
      "--event-bytes <bytes>",
      `size of one event's JSON; at least ${eventBytesMin}`,
      wholeUpTo(100_000_000),
      400,
    )
    .option("--gzip", "compress the bodies", false)
    .option("--threads <count>", "threads that generate the load", wholeUpTo(threadsMax), 1)
    .option(
      "--backlog <requests>",
      "maximum number of requests waiting for a connection (default: 5 seconds' worth)",
      wholeUpTo(backlogMaxMax),
    )
    .option(
      "--timeout <seconds>",
      "time after which an unanswered request has failed",
      positive,
      10,
    )
    .option(
      "--grace <seconds>",
      "time after the last request was due in which waiting requests are still sent",
      zeroOrMore,
      1,
    )
    .option("--retry", "send requests answered 429 or 503 again, after their Retry-After", false)
    .option("--p99-ms <milliseconds>", "fail when the p99 is above this", positive)
    .option(
      "--nats-url <url[,url]>",
      "NATS in whose streams to check that every acknowledged event is stored once",
    )
    .addOption(new Option("--nats-token <secret>", "its token").env("PENSTOCK_NATS_TOKEN"))
    .option("--nats-creds <file>", "its credentials file")
    .option("--nats-ca <file>", "CA certificate of that NATS")
    .option("--nats-cert <file>", "client certificate for it, with --nats-key")
    .option("--nats-key <file>", "the certificate's key")
    .option(
      "--data-dir <folder>",
      "data folder of the embedded nats-server to check against, such as ./data of `npm run up`",
    )
    .option("--subject-prefix <name>", "the gateway's PENSTOCK_SUBJECT_PREFIX", "penstock")
    .option("--json", "the report as one JSON object on standard output", false)
    .option("--yes-i-own-this", "allow a target that is not this machine", false)
    .showHelpAfterError("(--help lists the options)")
    .exitOverride();
}

/** `args` does not contain the program. Throws a UsageError or an error of commander. */
export function readOptions(args: readonly string[]): LoadOptions {
  const command = commandLine().parse(args, { from: "user" });
  const flags = command.opts<Flags>();
  if (command.args.length > 0) throw new UsageError(`there is no argument ${command.args[0]}`);
  if (!isLoopback(flags.url.hostname) && !flags.yesIOwnThis) {
    throw new UsageError(
      `${flags.url.hostname} is not this machine: add --yes-i-own-this if it is yours to load`,
    );
  }
  if (flags.natsUrl !== undefined && flags.dataDir !== undefined) {
    throw new UsageError("--nats-url and --data-dir each name a NATS to check against: give one");
  }
  const plan = planOf(flags);
  const checked = flags.natsUrl !== undefined || flags.dataDir !== undefined;
  const problem = problemWith(plan, checked);
  if (problem !== undefined) throw new UsageError(problem);
  return {
    plan,
    natsUrl: flags.natsUrl,
    natsToken: flags.natsToken,
    natsCreds: flags.natsCreds,
    natsCa: flags.natsCa,
    natsCert: flags.natsCert,
    natsKey: flags.natsKey,
    dataDir: flags.dataDir,
    subjectPrefix: flags.subjectPrefix,
    p99MsMax: flags.p99Ms,
    json: flags.json,
  };
}

function planOf(flags: Flags): Plan {
  const { key, rate, connections, batch, eventBytes, gzip, threads, retry } = flags;
  const url = new URL(flags.url);
  // A URL without a path gets the matching endpoint. A URL with a path is used unchanged.
  if (url.pathname === "/") url.pathname = batch === 1 ? "/capture/" : "/batch/";
  const secondsWorth = Math.ceil((rate / batch) * backlogSecondsDefault);
  return {
    url: url.href,
    key,
    uuidPrefix: newUuidPrefix(),
    rate,
    warmUpMs: flags.warmUp * 1_000,
    durationMs: flags.duration * 1_000,
    batch,
    eventBytes,
    gzip,
    threads,
    connections,
    backlogMax: flags.backlog ?? Math.min(Math.max(secondsWorth, backlogMaxMin), backlogMaxMax),
    timeoutMs: flags.timeout * 1_000,
    graceMs: flags.grace * 1_000,
    retry,
  };
}

function problemWith(plan: Plan, checked: boolean): string | undefined {
  if (plan.eventBytes < eventBytesMin)
    return `--event-bytes ${plan.eventBytes} is too small: at least ${eventBytesMin}`;
  if (plan.threads > plan.connections)
    return `--threads ${plan.threads} needs as many --connections`;
  if (plan.threads > plan.backlogMax) return `--threads ${plan.threads} needs as large a --backlog`;
  const requests = requestsTotal(plan);
  if (requests < 1)
    return "no request is due: --rate times --duration must be at least one --batch";
  if (requests > 0xffff_ffff)
    return "too many requests: take a shorter --duration or a lower --rate";
  if (checked && requests * plan.batch > eventsCheckedMax) {
    return `more than ${eventsCheckedMax} events cannot be checked: take a shorter --duration, or no --nats-url and --data-dir`;
  }
  return undefined;
}

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) === 4) return host.startsWith("127.");
  return host === "::1" || host === "localhost" || host.endsWith(".localhost");
}

function toUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new InvalidArgumentError("Not an http or https address.");
  return url;
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < Number.MAX_SAFE_INTEGER))
    throw new InvalidArgumentError("Not a number above 0.");
  return value;
}

function zeroOrMore(text: string): number {
  return Number(text) === 0 && text.trim() !== "" ? 0 : positive(text);
}

function wholeUpTo(max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!(Number.isInteger(value) && value >= 1 && value <= max)) {
      throw new InvalidArgumentError(`Not a whole number from 1 to ${max}.`);
    }
    return value;
  };
}
