// Network namespaces that a run makes for itself, and the calls of ip, tc and ss in them. Their
// names carry the run's pid, so that the next run finds what a dead one left and removes it.
// Changes nothing outside them but the links of which one end is in them.

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";

const folder = "/var/run/netns";
const ours = /^penstock-(\d+)-/;
/** The name, in a namespace, of the link to this process's network. */
export const outerLink = "outer";
const probeMsMax = 10_000;
const endMsMax = 2_000;

/** The name of a namespace of this run. */
export function namespaceOf(what: string): string {
  return `penstock-${process.pid}-${what}`;
}

/** What goes before the command line of a process that is to run in the namespace. */
export function within(namespace: string): readonly string[] {
  return ["ip", "netns", "exec", namespace];
}

/**
 * Runs ip with each line as a command, written without ip's name: in the namespace, or here where
 * none is named. Throws at the first command that fails, with what it said.
 */
export function ip(lines: readonly string[], namespace?: string): void {
  tell("ip", [...(namespace === undefined ? [] : ["-n", namespace]), "-batch", "-"], lines);
}

/** As `ip`. */
export function tc(lines: readonly string[], namespace: string): void {
  tell("tc", ["-n", namespace, "-batch", "-"], lines);
}

/**
 * Ends at once every connection between the namespace and an address. What the connections held is
 * gone.
 */
export function endConnections(namespace: string, to: string): void {
  tell("ss", ["-N", namespace, "--tcp", "--all", "--kill", "dst", to]);
}

/**
 * Makes the namespace forward packets from one link to another. Senders of forbidden packets are
 * told so each time.
 */
export function makeRouter(namespace: string): void {
  const settings = [
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit",
  ];
  const [command, ...args] = within(namespace);
  tell(command!, [...args, "sh", "-e", "-c", settings.join("; ")]);
}

/**
 * Removes the namespaces, the processes in them and their links to here. A namespace that does not
 * exist is passed over.
 */
export function removeNamespaces(namespaces: readonly string[]): void {
  const there = namespaces.filter((namespace) => existsSync(path.join(folder, namespace)));
  // Another run may remove the namespace first.
  for (const namespace of there) tried(() => endWhoeverRunsIn(namespace));
  for (const namespace of there) {
    // Bytes that a dead process had still to send keep a namespace and its links for minutes.
    tried(() => tell("ss", ["-N", namespace, "--tcp", "--all", "--kill"]));
    tried(() => ip([`link del ${outerLink}`], namespace));
    tried(() => ip([`netns del ${namespace}`]));
  }
}

/** Removes the namespaces of runs that ended without removing them. */
export function removeStaleNamespaces(): void {
  if (!existsSync(folder)) return;
  removeNamespaces(
    readdirSync(folder).filter((name) => ours.test(name) && !isAlive(Number(ours.exec(name)?.[1]))),
  );
}

/**
 * Why a network of namespaces cannot be had here; undefined where it can. Makes some of each part
 * that it needs, and removes them.
 */
export function whyNoNamespaces(): string | undefined {
  if (process.platform !== "linux") return "they are Linux's";
  if (process.getuid?.() !== 0) return "only root may make them";
  const namespace = namespaceOf(`probe-${randomInt(2 ** 32)}`);
  try {
    ip([`netns add ${namespace}`]);
    makeRouter(namespace);
    const rules = ["blackhole", "prohibit"].map(
      (action) => `rule add from 10.0.0.2 to 10.0.1.2 ${action}`,
    );
    const links = [
      "link add name probe type veth peer name other",
      "link set dev probe up",
      "link set dev lo up",
    ];
    ip([...rules, ...links], namespace);
    tc(slowLines("probe", [{ from: "10.0.0.2", bytesPerSecond: 100_000 }]), namespace);
    const [command, ...args] = within(namespace);
    const script = path.join(import.meta.dirname, "connection-that-is-ended.ts");
    execFileSync(command!, [...args, process.execPath, script], {
      stdio: "pipe",
      timeout: probeMsMax,
    });
    return undefined;
  } catch (error) {
    return (error as Error).message.trim().split("\n").slice(0, 2).join(" ");
  } finally {
    removeNamespaces([namespace]);
  }
}

/** Bytes that wait for their turn on a slow way; what comes then is lost, as on a router. */
const waitingBytesMax = 262_144;

/** For tc, what makes a link slow for what comes from some addresses; nothing else waits. */
export function slowLines(
  link: string,
  sources: readonly { readonly from: string; readonly bytesPerSecond: number }[],
): string[] {
  const lines = sources.flatMap(({ from, bytesPerSecond }, index) => {
    const id = `1:${index + 1}`;
    return [
      `class add dev ${link} parent 1: classid ${id} htb rate ${bytesPerSecond}bps quantum 65536`,
      `qdisc add dev ${link} parent ${id} bfifo limit ${waitingBytesMax}`,
      `filter add dev ${link} parent 1: protocol ip u32 match ip src ${from}/32 flowid ${id}`,
    ];
  });
  return [`qdisc add dev ${link} root handle 1: htb`, ...lines];
}

function tell(program: string, args: readonly string[], lines?: readonly string[]): string {
  const input = lines === undefined ? {} : { input: `${lines.join("\n")}\n` };
  return execFileSync(program, args, { ...input, encoding: "utf8", stdio: "pipe" });
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}

function endWhoeverRunsIn(namespace: string): void {
  const deadline = performance.now() + endMsMax;
  for (;;) {
    const pids = tell("ip", ["netns", "pids", namespace]).trim();
    if (pids === "" || performance.now() > deadline) return;
    for (const pid of pids.split("\n")) tried(() => process.kill(Number(pid), "SIGKILL"));
  }
}

function tried(action: () => unknown): void {
  try {
    action();
  } catch {
    // It is gone, or the next run tries again.
  }
}
