// Creates and removes network namespaces with ip, tc and ss. Their names contain the pid of the
// run, so that the next run can remove the namespaces of a dead run.

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";

const folder = "/var/run/netns";
const ours = /^penstock-(\d+)-/;
export const outerLink = "outer";
const probeMsMax = 10_000;
const endMsMax = 2_000;

export function namespaceOf(what: string): string {
  return `penstock-${process.pid}-${what}`;
}

export function within(namespace: string): readonly string[] {
  return ["ip", "netns", "exec", namespace];
}

export function ip(lines: readonly string[], namespace?: string): void {
  tell("ip", [...(namespace === undefined ? [] : ["-n", namespace]), "-batch", "-"], lines);
}

export function tc(lines: readonly string[], namespace: string): void {
  tell("tc", ["-n", namespace, "-batch", "-"], lines);
}

export function endConnections(namespace: string, to: string): void {
  tell("ss", ["-N", namespace, "--tcp", "--all", "--kill", "dst", to]);
}

/**
 * Makes the namespace forward packets between its links. The kernel reports every rejected packet
 * to its sender by ICMP, without a rate limit.
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
 * Removes the namespaces, their processes and their links to this namespace. Skips a namespace that
 * does not exist.
 */
export function removeNamespaces(namespaces: readonly string[]): void {
  const there = namespaces.filter((namespace) => existsSync(path.join(folder, namespace)));
  for (const namespace of there) tried(() => endWhoeverRunsIn(namespace));
  for (const namespace of there) {
    // Unsent bytes of a dead process keep a namespace and its links for minutes.
    tried(() => tell("ss", ["-N", namespace, "--tcp", "--all", "--kill"]));
    tried(() => ip([`link del ${outerLink}`], namespace));
    tried(() => ip([`netns del ${namespace}`]));
  }
}

export function removeStaleNamespaces(): void {
  if (!existsSync(folder)) return;
  removeNamespaces(
    readdirSync(folder).filter((name) => ours.test(name) && !isAlive(Number(ours.exec(name)?.[1]))),
  );
}

/**
 * Returns undefined if this process can create a network of namespaces. Creates and removes one
 * item of each required kind.
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

const waitingBytesMax = 262_144;

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
    // The namespace or process no longer exists, or the next run removes it.
  }
}
