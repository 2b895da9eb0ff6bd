import { Agent } from "node:http";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { SilenceWatch } from "../../../src/gateway/workers/supervisor.ts";
import { ended } from "../../kit/processes.ts";
import { natsWithProject, postOne, restartsTotal, workersOn } from "../../kit/workers.ts";

async function answered(port: number): Promise<number> {
  const tries = Array.from({ length: 20 }, async (_, index) => {
    const agent = new Agent({ keepAlive: false });
    const late = new Promise<number>((resolve) => setTimeout(resolve, 2_000, 0).unref());
    const status = await Promise.race([postOne(port, agent, String(index)).catch(() => 0), late]);
    agent.destroy();
    return status;
  });
  return (await Promise.all(tries)).filter((status) => status === 200).length;
}

describe("a worker", () => {
  test("is replaced if its process is stopped while it serves", async () => {
    const gateway = await workersOn(await natsWithProject(), "--workers", "2");
    const frozen = gateway.pid(0);
    process.kill(frozen, "SIGSTOP");
    await expect.poll(() => gateway.pid(0), { timeout: 30_000, interval: 100 }).not.toBe(frozen);
    expect(gateway.process.exitCode).toBe(null);
    expect((await gateway.metrics()).get(restartsTotal)).toBe(1);
    expect(await answered(gateway.port)).toBe(20);
    gateway.process.kill("SIGTERM");
    expect(await ended(gateway.process)).toBe(0);
  }, 60_000);

  test("is replaced later if it is still loading", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const [waiting, silent, loading] = [fakeWorker(true), fakeWorker(false), fakeWorker(false)];
    loading.messagesRead = 0;
    const running = new Map([waiting, silent, loading].map((worker, index) => [index, worker]));
    const watch = new SilenceWatch({ running, log: { error: () => {} } });
    vi.advanceTimersByTime(9_000);
    expect(silent.kills).toBe(0);
    vi.advanceTimersByTime(3_000);
    expect([waiting.kills, silent.kills, loading.kills]).toEqual([0, 1, 0]);
    running.delete(1);
    vi.advanceTimersByTime(60_000);
    expect([waiting.kills, loading.kills]).toEqual([0, 1]);
    watch.stop();
  });
});

interface FakeWorker {
  pid: number;
  messagesRead: number;
  kills: number;
  asked: number;
  kill(): void;
  ask(): Promise<undefined>;
}

function fakeWorker(answers: boolean): FakeWorker {
  return {
    pid: 1,
    messagesRead: 1,
    kills: 0,
    asked: 0,
    kill() {
      this.kills += 1;
    },
    ask() {
      this.asked += 1;
      if (answers) this.messagesRead += 1;
      return Promise.resolve(undefined);
    },
  };
}
