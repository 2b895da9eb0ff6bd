import { describe, expect, onTestFinished, test } from "vitest";
import { type NatsAccess, shownUrls } from "../../../src/platform/nats/access.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { refusalOf, tryToConnect } from "../../kit/nats-tls.ts";

const password = "p%s:w@r d/1";
const escaped = encodeURIComponent(password);

async function serverWith(authorization: string): Promise<{ port: number }> {
  const server = await startNatsServer({
    jetstream: false,
    extraConfig: `authorization { ${authorization} }`,
  });
  onTestFinished(() => server.remove());
  return server;
}

describe("the user in a NATS URL", () => {
  test("may have a password, be a token, or be absent", async () => {
    const withUser = await serverWith(`user: "us@er", password: ${JSON.stringify(password)}`);
    const withToken = await serverWith(`token: "t0ken"`);
    const good: NatsAccess[] = [
      { natsUrl: `nats://us%40er:${escaped}@127.0.0.1:${withUser.port}` },
      {
        natsUrl: `us%40er:${escaped}@127.0.0.1:${withUser.port}, nats://localhost:${withUser.port}`,
      },
      { natsUrl: `nats://t0ken@127.0.0.1:${withToken.port}` },
      { natsUrl: `nats://127.0.0.1:${withToken.port}`, natsToken: "t0ken" },
    ];
    for (const access of good) expect((await tryToConnect(access).link).connected).toBe(true);
    const bad = [
      `nats://us%40er:wrong@127.0.0.1:${withUser.port}`,
      `nats://127.0.0.1:${withUser.port}`,
    ];
    for (const natsUrl of bad) {
      const { message } = await refusalOf(tryToConnect({ natsUrl }));
      expect(message).toMatch(/authorization violation/i);
      expect(message).not.toContain("wrong");
    }
  });

  test("is not shown in messages", () => {
    expect(shownUrls(`tls://u:${escaped}@a:4222, u:p@b, nats://c:1, t@[::1]:4222`)).toBe(
      "tls://a:4222,b,nats://c:1,[::1]:4222",
    );
  });
});
