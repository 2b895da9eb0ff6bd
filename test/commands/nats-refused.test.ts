import { describe, expect, onTestFinished, test } from "vitest";
import { startNatsServer } from "../kit/nats-server.ts";
import { ended, penstock } from "../kit/processes.ts";

const commands = [["project", "list"], ["export", "shop"], ["tail"]];

describe.each([
  {
    what: "a nats-server without JetStream",
    options: { jetstream: false },
    user: "",
    line: "this nats-server runs without JetStream. Fix: start it with --jetstream, or with a `jetstream` block",
  },
  {
    what: "a user without the permission",
    options: {
      extraConfig:
        'authorization { users: [ { user: ada, password: x, permissions: { publish: { deny: "$JS.>" } } } ] }',
    },
    user: "ada:x@",
    line: "Fix: give the user in PENSTOCK_NATS_URL this permission in nats-server",
  },
])("a command with $what", ({ options, user, line }) => {
  test("fails with a one-line error and exit code 1", async () => {
    const server = await startNatsServer(options);
    onTestFinished(() => server.remove());
    const url = server.url.replace("nats://", `nats://${user}`);
    const runs = commands.map((args) => penstock(...args, "--nats-url", url));
    for (const run of runs) {
      expect(await ended(run), run.said.err).toBe(1);
      expect(run.said.err).toMatch(/^penstock: cannot connect to NATS at 127\.0\.0\.1:\d+: .*\n$/);
      expect(run.said.err).toContain(line);
    }
  });
});
