import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../kit/free-port.ts";
import { ImageKit, image } from "./image-kit.ts";

const kit = new ImageKit();
const uid = 65_532;
const megabyte = 1_000_000;

beforeAll(() => kit.build(), 20 * 60_000);
afterAll(() => kit.remove());

interface Started {
  readonly name: string;
  readonly url: string;
  readonly volume: string;
}

function volumeOf(name: string, owner: number): string {
  const volume = path.join(kit.folder, `volume-${name}`);
  mkdirSync(volume);
  chownSync(volume, owner, owner);
  return volume;
}

function mount(volume: string): string[] {
  return ["--volume", `${volume}:/data`, "--env", "PENSTOCK_STREAM_BYTES_MAX=67108864"];
}

async function start(name: string, volume: string, command: string): Promise<Started> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const ports = ["--env", `PENSTOCK_PORT=${port}`, "--env", `PENSTOCK_ADMIN_PORT=${adminPort}`];
  const closed = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"];
  kit.start(name, [...ports, ...closed, ...mount(volume)], command);
  await expect
    .poll(
      () => fetch(`http://127.0.0.1:${adminPort}/readyz`).then(({ status }) => status, String),
      {
        timeout: 30_000,
      },
    )
    .toBe(200);
  return { name, url: `http://127.0.0.1:${port}`, volume };
}

function isHealthy({ name }: Started): boolean {
  try {
    kit.podman("healthcheck", "run", name);
    return true;
  } catch {
    return false;
  }
}

const event = JSON.stringify({ api_key: "phc_demo", event: "sent", distinct_id: "user-1" });

test("the image has no root user and the default command `up`", () => {
  const [{ Size: size, Config: config }] = JSON.parse(kit.podman("image", "inspect", image));
  expect(size).toBeLessThanOrEqual(200 * megabyte);
  expect(config).toMatchObject({
    User: `${uid}:${uid}`,
    Entrypoint: ["penstock"],
    Cmd: ["up"],
    Volumes: { "/data": {} },
    StopSignal: "SIGTERM",
  });
});

test("the image stores events on a read-only root without capabilities", async () => {
  const started = await start("first", volumeOf("first", uid), "up");
  const { port } = new URL(started.url);
  expect(isHealthy(started)).toBe(true);
  const answer = await fetch(`${started.url}/capture/`, { method: "POST", body: event });
  expect(await answer.json()).toEqual({ status: "Ok", accepted: 1, dropped: 0 });

  const socket = connect(Number(port), "127.0.0.1");
  socket.write(`POST /capture/ HTTP/1.1\r\nHost: one\r\nContent-Length: ${event.length}\r\n\r\n`);
  socket.write(event.slice(0, 10));
  // The gateway has accepted the connection once it answers another one.
  await fetch(`${started.url}/capture/`, { method: "POST", body: event });
  const stop = spawn("nsenter", kit.podmanCommand("stop", "--time", "30", started.name));
  const stopped = once(stop, "exit");
  await expect
    .poll(() => kit.logs(started.name), { timeout: 10_000 })
    .toContain('"msg":"gateway stopping"');
  socket.write(event.slice(10));
  const [said] = (await once(socket, "data")) as [Buffer];
  expect(said.toString()).toMatch(/^HTTP\/1\.1 200 /);
  await stopped;
  expect(kit.podman("inspect", "--format", "{{.State.ExitCode}}", started.name).trim()).toBe("0");

  const second = await start("second", started.volume, "serve");
  const exported = kit.podman("exec", second.name, "penstock", "export", "demo");
  expect(exported.match(/"event":"sent"/g)).toHaveLength(3);
  kit.podman("stop", second.name);
});

function bytesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.(blk|inf|sqlite)$/.test(entry.name))
    .map((entry) => {
      const file = path.join(entry.parentPath, entry.name);
      return `${file} ${readFileSync(file, "base64")}`;
    })
    .sort();
}

test("the image does not start on a volume of a newer nats-server", async () => {
  const { volume, name } = await start("newer", volumeOf("newer", uid), "serve");
  kit.podman("stop", name);
  writeFileSync(path.join(volume, "jetstream/written-by-nats-server"), "99.0.0\n");
  const before = bytesIn(volume);
  expect(before.length).toBeGreaterThan(0);
  const { code, said } = kit.tryRun(mount(volume));
  expect(code).toBe(1);
  expect(said).toContain("the store was last written by nats-server 99.0.0");
  expect(said).toContain("in a container use a newer image");
  expect(bytesIn(volume)).toEqual(before);
});

test("the image does not start on a volume of another user", () => {
  const { code, said } = kit.tryRun(mount(volumeOf("other", 1_000)));
  expect(code).toBe(1);
  expect(said).toContain("this user may not write to it, which belongs to uid 1000");
});
