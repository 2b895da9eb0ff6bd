// The network of a cluster as network namespaces with a router between them. A cut drops packets,
// as a real network does. The links to the scenario's process are never cut.

import { randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import type { Cut, End, NetworkOfNodes, Place } from "./cluster-network.ts";
import {
  endConnections,
  ip,
  makeRouter,
  namespaceOf,
  outerLink,
  removeNamespaces,
  removeStaleNamespaces,
  slowLines,
  tc,
  within,
} from "./namespaces.ts";

type Fate = "blackhole" | "prohibit";

interface Home {
  readonly namespace: string;
  readonly inner: string;
  readonly router: string;
  readonly link: string;
  readonly outer: string;
  readonly desk: string;
  readonly deskHost: string;
}

/** Only the ends use this network, so every run can use the same private network. */
const innerNetwork = "10.0.0.0/16";
/**
 * This process has its addresses in 198.18.0.0/15, which is reserved for network tests (RFC 2544),
 * in blocks of 16.
 */
const blocks = 8_192;
const addressesEach = 4;
const rulePreference = 100;
const sentAgainMs = 1_000;
const sentAgainMsMax = 120_000;

function wayOf(from: Home, to: Home): string {
  return `from ${from.inner} to ${to.inner}`;
}

/**
 * `routePorts` are the ports at which the nodes will accept routes. If a part of the network cannot
 * be created, removes all other parts and throws.
 */
export function createNetworkOfNamespaces(routePorts: readonly number[]): NetworkOfNodes {
  removeStaleNamespaces();
  const block = freeBlock();
  const router = namespaceOf(`${block}-router`);
  const ends: readonly End[] = [...routePorts.keys(), "gateway"];
  const homes = ends.map((end, index) => homeOf(end, index, block));
  const all = [router, ...homes.map(({ namespace }) => namespace)];
  const remove = (): void => {
    process.removeListener("exit", remove);
    removeNamespaces(all);
  };
  // A namespace outlives the process that created it.
  process.once("exit", remove);
  try {
    make(router, homes);
  } catch (error) {
    remove();
    throw error;
  }

  const fates = new Map<string, Fate>();
  const silent = new Map<
    string,
    { readonly ends: readonly [Home, Home]; readonly sinceMs: number }
  >();
  let lateUntilMs = 0;
  const slowed = new Map<
    string,
    { readonly from: Home; readonly to: Home; readonly bytesPerSecond: number }
  >();
  const slowLinks = new Set<string>();

  const home = (end: End): Home => homes[ends.indexOf(end)]!;

  function cutAll(pairs: readonly (readonly [End, End])[], how: Cut): void {
    const lines: string[] = [];
    for (const [from, to] of pairs.map(([one, other]) => [home(one), home(other)] as const)) {
      const ways = how === "one-way" ? [wayOf(from, to)] : [wayOf(from, to), wayOf(to, from)];
      const fate = how === "reset" ? "prohibit" : "blackhole";
      for (const way of ways) {
        lines.push(...changeOf(way, fates.get(way), fate));
        fates.set(way, fate);
      }
      const way = wayOf(from, to);
      if (how !== "reset" && !silent.has(way))
        silent.set(way, { ends: [from, to], sinceMs: performance.now() });
    }
    ip(lines, router);
    if (how === "reset") for (const [from, to] of pairs) endBetween(home(from), home(to));
  }

  function slowAll(): void {
    const lines = [...slowLinks].map((link) => `qdisc del dev ${link} root`);
    slowLinks.clear();
    for (const { link } of homes) {
      const sources = [...slowed.values()].filter(({ to }) => to.link === link);
      if (sources.length === 0) continue;
      slowLinks.add(link);
      const from = sources.map((source) => ({
        from: source.from.inner,
        bytesPerSecond: source.bytesPerSecond,
      }));
      lines.push(...slowLines(link, from));
    }
    if (lines.length > 0) tc(lines, router);
  }

  return {
    cut: (from, to, how) => cutAll([[from, to]], how),
    isolate(isolated, how) {
      const others = ends.filter((end) => !isolated.includes(end));
      cutAll(
        isolated.flatMap((one) => others.map((other) => [one, other] as const)),
        how,
      );
    },
    slow(from, tos, { bytesPerSecond }) {
      for (const to of tos.map(home)) {
        slowed.set(wayOf(home(from), to), { from: home(from), to, bytesPerSecond });
        slowed.set(wayOf(to, home(from)), { from: to, to: home(from), bytesPerSecond });
      }
      slowAll();
      return `${bytesPerSecond} bytes/s, late only by what waits before`;
    },
    heal({ lost = false } = {}) {
      const now = performance.now();
      for (const { ends: pair, sinceMs } of silent.values()) {
        if (lost) endBetween(...pair);
        else
          lateUntilMs = Math.max(
            lateUntilMs,
            now + Math.min(now - sinceMs + sentAgainMs, sentAgainMsMax),
          );
      }
      silent.clear();
      ip(
        [...fates].flatMap(([way, fate]) => changeOf(way, fate, undefined)),
        router,
      );
      fates.clear();
      slowed.clear();
      slowAll();
      return Math.max(0, Math.round(lateUntilMs - performance.now()));
    },
    placeOf: (end): Place => ({
      command: within(home(end).namespace),
      host: home(end).outer,
      innerHost: home(end).inner,
    }),
    routeUrl: (_, to) => `nats://${home(to).inner}:${routePorts[to]}`,
    openToGateway: async (ports) => ports.map((port, node) => `nats://${home(node).inner}:${port}`),
    close: async () => remove(),
  };
}

/** The new rule is added before the old rule is removed, so that no packet passes in between. */
function changeOf(way: string, before: Fate | undefined, after: Fate | undefined): string[] {
  if (before === after) return [];
  const rule = (verb: string, fate: Fate | undefined): string[] =>
    fate === undefined ? [] : [`rule ${verb} pref ${rulePreference} ${way} ${fate}`];
  return [...rule("add", after), ...rule("del", before)];
}

function endBetween(one: Home, other: Home): void {
  endConnections(one.namespace, other.inner);
  endConnections(other.namespace, one.inner);
}

function freeBlock(): number {
  const taken = Object.values(networkInterfaces()).flatMap((links) =>
    (links ?? []).map(({ address }) => address),
  );
  for (;;) {
    const block = randomInt(blocks);
    const addresses = Array.from({ length: 16 }, (_, index) => outerAddress(block, index));
    if (!addresses.some((address) => taken.includes(address))) return block;
  }
}

function outerAddress(block: number, index: number): string {
  const number = block * 16 + index;
  return `198.${18 + (number >> 16)}.${(number >> 8) & 0xff}.${number & 0xff}`;
}

function homeOf(end: End, index: number, block: number): Home {
  return {
    namespace: namespaceOf(`${block}-${end === "gateway" ? end : `node-${end}`}`),
    router: `10.0.${index}.1`,
    inner: `10.0.${index}.2`,
    link: `to-${end}`,
    desk: `pstk${block}-${index}`,
    deskHost: outerAddress(block, index * addressesEach + 1),
    outer: outerAddress(block, index * addressesEach + 2),
  };
}

function make(router: string, homes: readonly Home[]): void {
  ip(
    [router, ...homes.map(({ namespace }) => namespace)].map(
      (namespace) => `netns add ${namespace}`,
    ),
  );
  makeRouter(router);
  for (const { namespace, link, desk, inner, outer, deskHost, ...home } of homes) {
    ip(linkLines({ name: desk, address: deskHost, peer: outerLink, namespace }));
    ip(linkLines({ name: link, address: home.router, peer: "inner", namespace }), router);
    const own = [...upLines(outerLink, outer), ...upLines("inner", inner)];
    ip(["link set dev lo up", ...own, `route add ${innerNetwork} via ${home.router}`], namespace);
  }
}

interface LinkParts {
  readonly name: string;
  readonly address: string;
  readonly peer: string;
  readonly namespace: string;
}

function linkLines({ name, address, peer, namespace }: LinkParts): string[] {
  return [
    `link add name ${name} type veth peer name ${peer} netns ${namespace}`,
    ...upLines(name, address),
  ];
}

function upLines(link: string, address: string): string[] {
  return [`addr add ${address}/30 dev ${link}`, `link set dev ${link} up`];
}
