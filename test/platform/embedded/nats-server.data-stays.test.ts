import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { DiscardPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { natsConfigFile, storeVersionFile } from "../../../src/platform/embedded/nats-config.ts";
import { startEmbeddedNats } from "../../../src/platform/embedded/nats-server.ts";
import { freePort } from "../../kit/free-port.ts";
import { oldestNatsServer } from "../../kit/nats-server.ts";
import { binary, embeddedOn, silent, someBytes, temporaryFolder } from "../../kit/processes.ts";

describe("the embedded nats-server", () => {
  test("keeps its messages, address and token after a restart", async () => {
    const dataDir = temporaryFolder();
    const first = await embeddedOn(dataDir);
    const writer = await connect({ servers: first.url, token: first.token });
    await (await jetstreamManager(writer)).streams.add({ name: "S", subjects: ["s"] });
    await jetstream(writer).publish("s", "kept");
    await writer.close();
    await first.close();

    const second = await embeddedOn(dataDir);
    expect({ url: second.url, token: second.token }).toEqual({
      url: first.url,
      token: first.token,
    });
    const reader = await connect({ servers: second.url, token: second.token });
    const message = await (await jetstreamManager(reader)).streams.getMessage("S", { seq: 1 });
    expect(message?.string()).toBe("kept");
    await reader.close();
  });

  test("rejects a client without the token", async () => {
    const embedded = await embeddedOn(temporaryFolder());
    await expect(connect({ servers: embedded.url, maxReconnectAttempts: 0 })).rejects.toThrow(
      /authorization/i,
    );
  });

  test("continues to serve a connected client after a restart", async () => {
    const dataDir = temporaryFolder();
    const first = await embeddedOn(dataDir);
    const { url: servers, token } = first;
    const reader = await connect({
      servers,
      token,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
    });
    await first.close();
    const second = await embeddedOn(dataDir);
    expect(second.url).toBe(first.url);
    const answers = (): Promise<boolean> =>
      reader.flush().then(
        () => true,
        () => false,
      );
    await expect.poll(answers, { timeout: 30_000 }).toBe(true);
    await reader.close();
  });

  test("uses and stores a configured port and token", async () => {
    const dataDir = temporaryFolder();
    const port = await freePort();
    const options = { dataDir, binary, streamBytesTotal: someBytes, host: process, log: silent };
    const set = await startEmbeddedNats({ ...options, port, token: "chosen" });
    expect({ url: set.url, token: set.token }).toEqual({
      url: `nats://127.0.0.1:${port}`,
      token: "chosen",
    });
    await (await connect({ servers: set.url, token: "chosen" })).close();
    await set.close();
    const kept = await embeddedOn(dataDir);
    expect({ url: kept.url, token: kept.token }).toEqual({ url: set.url, token: "chosen" });
  });

  test("replaces a stored port that is in use and logs a warning", async () => {
    const dataDir = temporaryFolder();
    const first = await embeddedOn(dataDir);
    const port = Number(new URL(first.url).port);
    await first.close();
    const stranger = createServer().listen(port, "127.0.0.1");
    const warnings: string[] = [];
    const log = { ...silent, warn: (_: object, message: string) => void warnings.push(message) };
    const options = { dataDir, binary, streamBytesTotal: someBytes, host: process, log };
    await expect(startEmbeddedNats({ ...options, port })).rejects.toThrow(
      `port ${port} is taken. Set PENSTOCK_NATS_PORT (--nats-port) to another`,
    );
    const second = await startEmbeddedNats(options);
    expect(second.url).not.toBe(first.url);
    expect(second.token).toBe(first.token);
    expect(warnings).toEqual([expect.stringContaining("is in use by another process")]);
    await second.close();
    stranger.close();
  });

  test("reads data written by 2.10", async () => {
    const dataDir = temporaryFolder();
    const versionOf = (file: string): string =>
      /v(\d+\.\d+\.\d+)/.exec(execFileSync(file, ["--version"], { encoding: "utf8" }))?.[1] ?? "";
    const start = (file: string) =>
      startEmbeddedNats({
        dataDir,
        streamBytesTotal: someBytes,
        host: process,
        log: silent,
        binary: { file, version: versionOf(file) },
      });
    const older = await start(oldestNatsServer());
    const writer = await connect({ servers: older.url, token: older.token });
    const manager = await jetstreamManager(writer);
    await manager.streams.add({
      name: "S",
      subjects: ["s"],
      max_bytes: 500_000,
      discard: DiscardPolicy.New,
    });
    for (let n = 0; n < 500; n++)
      await jetstream(writer).publish("s", `message ${n}`, { msgID: String(n) });
    await writer.close();
    await older.close();

    const newer = await start(binary.file);
    const reader = await connect({ servers: newer.url, token: newer.token });
    const streams = (await jetstreamManager(reader)).streams;
    expect((await streams.info("S")).state.messages).toBe(500);
    for (const seq of [1, 250, 500]) {
      expect((await streams.getMessage("S", { seq }))?.string()).toBe(`message ${seq - 1}`);
    }
    const again = await jetstream(reader).publish("s", "message 499", { msgID: "499" });
    expect(again).toMatchObject({ duplicate: true, seq: 500 });
    await reader.close();
    await newer.close();
    const isOlder = /last written by nats-server .*; the older /;
    await expect(start(oldestNatsServer())).rejects.toThrow(isOlder);
    for (const garbage of ["", "\0\u{fffd}", 'authorization { token: "\\x" }\n']) {
      writeFileSync(natsConfigFile(dataDir), garbage);
      await expect(start(oldestNatsServer())).rejects.toThrow(isOlder);
    }
    rmSync(path.join(dataDir, "nats"), { recursive: true });
    await expect(start(oldestNatsServer())).rejects.toThrow(isOlder);

    const noted = storeVersionFile(dataDir);
    writeFileSync(natsConfigFile(dataDir), "");
    for (const damage of [() => writeFileSync(noted, "?"), () => rmSync(noted)]) {
      damage();
      await expect(start(oldestNatsServer())).rejects.toThrow(
        /is damaged; an older version might not read all of the store\. .* echo 2\.10\.\d+ > /,
      );
    }
    writeFileSync(noted, `${versionOf(binary.file)}\n`);
    await (await start(binary.file)).close();
  }, 180_000);

  test("logs that its stored configuration is damaged", async () => {
    const dataDir = temporaryFolder();
    const first = await embeddedOn(dataDir);
    await first.close();
    const file = natsConfigFile(dataDir);
    writeFileSync(file, readFileSync(file, "utf8").replace(/127\.0\.0\.1:\d+/, "127.0.0.1:99999"));
    const warnings: object[] = [];
    const log = { ...silent, warn: (fields: object) => void warnings.push(fields) };
    const options = { dataDir, binary, streamBytesTotal: someBytes, host: process, log };
    const second = await startEmbeddedNats(options);
    expect(second.token).toBe(first.token);
    await second.close();
    writeFileSync(file, readFileSync(file, "utf8").replace(/token: ".*"/, 'token: "\\x"'));
    const third = await startEmbeddedNats(options);
    expect(third.url).toBe(second.url);
    expect(third.token).not.toBe(first.token);
    await third.close();
    expect(warnings).toEqual([
      { file, lost: ["port"] },
      { file, lost: ["token"] },
    ]);
  });
});
