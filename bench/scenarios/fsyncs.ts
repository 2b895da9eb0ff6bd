// Checks that one PubAck is one fsync, as the fsync budget assumes. Tracing with strace slows the
// server, so this run measures nothing else.

import { execFileSync } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../harness/bench.ts";
import { startChild } from "../harness/child.ts";
import { openSession } from "../harness/session.ts";
import { singles } from "./loads.ts";

const attachMsMax = 10_000;

export async function fsyncs(bench: Bench): Promise<void> {
  if (!hasStrace()) {
    bench.remark(
      "fsyncs are counted as PubAcks: strace is not here to check that they are the same",
    );
    return;
  }
  const session = await openSession({
    variant: "penstock",
    sync: "always",
    closedLoop: bench.closedLoop,
  });
  try {
    const load = singles(128, 1);
    await session.warmUp(load, 1);
    await session.nats?.stored("one a message");
    const trace = startChild({
      program: "strace",
      args: ["-f", "-c", "-e", "trace=fsync,fdatasync", "-p", String(session.nats?.pid)],
    });
    const attached = await trace
      .line((line) => (/attached/.test(line) ? true : undefined), attachMsMax)
      .catch(() => false);
    if (!attached) {
      bench.remark(
        "fsyncs are counted as PubAcks: strace may not attach to check that they are the same",
      );
      await trace.end();
      return;
    }
    await delay(100);
    const { messages, events } = await session.measure(load);
    await trace.end("SIGINT");
    const calls = [
      ...trace.said().matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*?(?:fsync|fdatasync)$/gm),
    ];
    const fsyncCalls = calls.reduce((sum, match) => sum + Number(match[1]), 0);
    const values = { fsyncCalls, messages, events, fsyncsPerMessage: fsyncCalls / messages };
    bench.note({
      group: "fsyncs",
      scenario: "fsync calls by strace",
      variant: "penstock",
      sync: "always",
      round: 1,
      values,
    });
  } finally {
    await session.close();
  }
}

function hasStrace(): boolean {
  try {
    execFileSync("strace", ["-V"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
