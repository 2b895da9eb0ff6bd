import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { freePort } from "../kit/free-port.ts";
import { findNatsServer } from "../kit/nats-server.ts";
import { root } from "./docs-kit.ts";
import { blocks } from "./runner.ts";

const hasPgrep = spawnSync("pgrep", ["--version"]).error === undefined;
if (!hasPgrep) process.stderr.write("NOT RUN: the README's kill -9: pgrep is not on this host\n");

test.runIf(hasPgrep).each(blocks("killed"))(
  "the kill -9 demonstration of the README loses no answered event: %s",
  { timeout: 240_000 },
  async (_, { text }) => {
    let own = text;
    for (const port of ["8001", "9474"]) own = own.replaceAll(port, String(await freePort()));
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("PENSTOCK_"));
    const env = {
      ...Object.fromEntries(inherited),
      PENSTOCK_NATS_SERVER: findNatsServer(),
      PENSTOCK_STREAM_BYTES_MAX: String(64 * 1_048_576),
    };
    const clean = `${own}\ntest ! -e "$folder"`;
    const run = spawnSync("bash", ["-c", clean], {
      cwd: root,
      env,
      encoding: "utf8",
      timeout: 200_000,
    });
    const [, answered, stored] = /^answered 200: (\d+)\nstored: +(\d+)$/m.exec(run.stdout) ?? [];
    expect([run.status, Number(answered) > 0]).toEqual([0, true]);
    expect(Number(answered)).toBeLessThan(300);
    expect([Number(answered), Number(answered) + 1]).toContain(Number(stored));
  },
);
