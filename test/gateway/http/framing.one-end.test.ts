import { createConnection } from "node:net";
import { describe, expect, test } from "vitest";
import { event, expectUnharmed, raw, request, startTarget, stored } from "../../kit/hostile.ts";
import { framingCases } from "./framing-cases.ts";

const waitMsMax = 20_000;

describe("a request with ambiguous framing", () => {
  test("is the last request that the server reads from its connection", {
    timeout: 120_000,
  }, async () => {
    const target = await startTarget("--body-bytes-max", "1048576");
    const { port } = target;
    const forwarded = "X-Forwarded-For: 192.0.2.1";
    const cases = [...framingCases()];
    const heard = await Promise.all(
      cases.map(async ([name, { bytes }]) => {
        const atOnce = bytes(`at once ${name}`, `smuggled at once ${name}`);
        const before = request(event(`before ${name}`), [
          `Content-Length: ${event(`before ${name}`).length}`,
          forwarded,
        ]);
        const odd = bytes(`later ${name}`, `smuggled later ${name}`)
          .toString("latin1")
          .replace("Host: p\r\n", `Host: p\r\n${forwarded}\r\n`);
        const [answers] = await Promise.all([
          raw(port, [atOnce], { answers: 2 }),
          oneAfterTheOther(port, before, Buffer.from(odd, "latin1")),
        ]);
        return [name, answers] as const;
      }),
    );
    for (const [name, { ended, statuses }] of heard) {
      expect([name, ended]).toEqual([name, true]);
      expect([name, statuses.length]).toEqual([name, Math.min(statuses.length, 1)]);
    }
    const inStream = await stored(target);
    expect(inStream.filter((id) => id.startsWith("smuggled"))).toEqual([]);
    for (const [name] of cases) expect(inStream).toContain(`before ${name}`);
    await expectUnharmed(target);
  });

  test("gets exactly one answer", {
    timeout: 120_000,
  }, async () => {
    const target = await startTarget();
    const { port } = target;
    const cases = [...framingCases()].filter(([, { allowed }]) => allowed.length > 0);
    await Promise.all(
      cases.map(async ([name, { bytes, allowed }]) => {
        const whole = bytes(`alone ${name}`, "never sent");
        const alone = whole.subarray(0, whole.length - request(event("never sent")).length);
        const { statuses, rest } = await untilClosed(
          port,
          alone,
          request(event(`smuggled ${name}`)),
        );
        expect(allowed, name).toContain(statuses[0]);
        expect([name, rest]).toEqual([name, ""]);
      }),
    );
    expect((await stored(target)).filter((id) => id.startsWith("smuggled"))).toEqual([]);
  });

  test("does not delay other requests if thousands are pipelined", async () => {
    const target = await startTarget();
    const refusedAtOnce = request("{}");
    const { statuses, ended } = await raw(
      target.port,
      [Buffer.concat(Array.from({ length: 5_000 }, () => refusedAtOnce))],
      {
        answers: 5_000,
      },
    );
    expect(ended).toBe(true);
    expect(statuses.length).toBeLessThanOrEqual(300);
    await expectUnharmed(target);
  });
});

function oneAfterTheOther(port: number, first: Buffer, second: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: "127.0.0.1", port, noDelay: true });
    const timer = setTimeout(() => reject(new Error("the connection stays open")), waitMsMax);
    socket.once("data", () => socket.write(second));
    socket.on("data", () => {});
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
    socket.write(first);
  });
}

function untilClosed(
  port: number,
  first: Buffer,
  more: Buffer,
): Promise<{ statuses: number[]; rest: string }> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = createConnection({
      host: "127.0.0.1",
      port,
      noDelay: true,
      allowHalfOpen: true,
    });
    const timer = setTimeout(
      () => reject(new Error(`the connection stays open: ${text}`)),
      waitMsMax,
    );
    socket.setEncoding("latin1");
    socket.once("data", () => socket.write(more));
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("end", () => socket.destroy());
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      const [first = "", ...others] = text.split(/(?=HTTP\/1\.1 \d)/);
      resolve({ statuses: [Number(first.slice(9, 12))], rest: others.join("") });
    });
    socket.write(first);
  });
}
