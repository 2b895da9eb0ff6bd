import { describe, expect, test } from "vitest";
import { ended, penstock, temporaryFolder } from "../kit/processes.ts";

describe("the gateway", () => {
  test("accepts a request with 12 KB of headers, but not 24 KB", async () => {
    const gateway = penstock(
      "up",
      "--data-dir",
      temporaryFolder(),
      "--stream-bytes-max",
      "8388608",
      "--port",
      "0",
      "--admin-port",
      "0",
    );
    await expect.poll(() => gateway.said.out, { timeout: 30_000 }).toContain("curl ");
    const url = /(http:\S+\/capture\/)/.exec(gateway.said.out)?.[1] ?? "";
    const body = JSON.stringify({ api_key: "phc_demo", event: "e", distinct_id: "u" });
    const post = async (bytes: number): Promise<number> =>
      (await fetch(url, { method: "POST", body, headers: { cookie: `a=${"x".repeat(bytes)}` } }))
        .status;
    expect(await post(12_288)).toBe(200);
    expect(await post(24_576)).toBe(431);
    gateway.kill("SIGTERM");
    expect(await ended(gateway)).toBe(0);
  });

  test("logs the address of an unreachable NATS without the password", async () => {
    const list = penstock(
      "project",
      "list",
      "--nats-url",
      "nats://user:s3cret@127.0.0.1:1,nats://127.0.0.1:1",
    );
    expect(await ended(list)).toBe(1);
    expect(list.said.err).toContain("nats://127.0.0.1:1");
    expect(list.said.out + list.said.err).not.toContain("s3cret");
  });
});
