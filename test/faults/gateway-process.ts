import { type Child, startChild } from "../../bench/harness/child.ts";
import { freePort } from "../kit/free-port.ts";
import { here, type Place } from "./cluster-network.ts";
import type { GatewayProcess } from "./scenario.ts";

interface GatewayOptions {
  readonly command: "serve" | "up";
  readonly env: Readonly<Record<string, string>>;
  readonly place?: Place | undefined;
  /** The program of another release, and its first arguments. Default: this release. */
  readonly program?: readonly string[];
}

interface LogLine {
  readonly msg?: string;
  readonly time?: string;
  readonly port?: number;
  readonly adminPort?: number;
  readonly worker?: number;
  readonly pid?: number;
}

const startMsMax = 30_000;
const endMsMax = 40_000;
const main = new URL("../../src/main.ts", import.meta.url).pathname;
const thisRelease = [process.execPath, "--disable-warning=ExperimentalWarning", main];
/** The messages after which the whole gateway accepts requests. The last is that of 0.1.0. */
const listening = ["gateway listening", "all workers listen", "listening"];
const closing = ["gateway closing connections", "closing connections"];

/**
 * Resolves when the gateway accepts requests. The caller must kill the gateway, which also ends
 * with this process.
 */
export async function startGatewayProcess({
  command,
  env,
  place = here,
  program = thisRelease,
}: GatewayOptions): Promise<GatewayProcess> {
  const workers = new Map<number, number>();
  const closings: { fromMs: number; toMs: number }[] = [];
  let past = "";
  // The ports are not 0, because an assigned port cannot be reused while old connections of the
  // listener linger.
  let ports = { port: await freePort(), adminPort: await freePort() };
  let release = program;
  let child = await start();

  async function start(): Promise<Child> {
    const [file, ...args] = [...place.command, ...release, command];
    const own = {
      PENSTOCK_HOST: place.host,
      PENSTOCK_ADMIN_HOST: place.host,
      // Only a port that is not on loopback needs it. Release 0.1.0 does not have it.
      ...(place === here ? {} : { PENSTOCK_ADMIN_AUTH: "off" }),
      PENSTOCK_PORT: String(ports.port),
      PENSTOCK_ADMIN_PORT: String(ports.adminPort),
      ...env,
    };
    workers.clear();
    const started = startChild({ program: file!, args, env: own });
    follow(started);
    ports = await started.line(portsOf, startMsMax);
    return started;
  }

  function follow(started: Child): void {
    let rest = "";
    started.process.stderr?.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { msg, time = "", worker, pid } = parsed(line);
        if (closing.includes(msg ?? ""))
          closings.push({ fromMs: Date.parse(time), toMs: Number.POSITIVE_INFINITY });
        if (msg === "worker accepts connections" && worker !== undefined && pid !== undefined)
          workers.set(worker, pid);
      }
    });
  }

  return {
    get url() {
      return `http://${place.host}:${ports.port}`;
    },
    get adminUrl() {
      return `http://${place.host}:${ports.adminPort}`;
    },
    get pid() {
      return child.pid;
    },
    workers: () => [...workers.values()],
    async kill(signal) {
      const code = await endOf(child, signal);
      past += child.said();
      if (signal === "SIGTERM" && code !== 0)
        throw new Error(`end gateway: exit ${code} after SIGTERM\n${child.said()}`);
    },
    async restart(changed = release) {
      const open = closings.find(({ toMs }) => toMs === Number.POSITIVE_INFINITY);
      if (open !== undefined) open.toMs = Date.now();
      release = changed;
      child = await start();
    },
    closings: () => closings,
    log: () => past + child.said(),
  };
}

function endOf({ process: child }: Child, signal: NodeJS.Signals): Promise<number | string | null> {
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve(child.exitCode ?? child.signalCode);
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), endMsMax);
    child.once("close", (code, by) => {
      clearTimeout(timer);
      resolve(code ?? by);
    });
    child.kill(signal);
  });
}

function portsOf(line: string): { port: number; adminPort: number } | undefined {
  const { msg, port, adminPort } = parsed(line);
  if (!listening.includes(msg ?? "")) return undefined;
  return port === undefined || adminPort === undefined ? undefined : { port, adminPort };
}

function parsed(line: string): LogLine {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as LogLine) : {};
  } catch {
    return {};
  }
}
