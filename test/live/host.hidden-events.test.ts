import { describe, expect, onTestFinished, test } from "vitest";
import { startTestGateway, until } from "../kit/gateway.ts";
import { consumersOn, watch } from "./live-kit.ts";

describe("events on the live page", () => {
  test.each([
    ["0.0.0.0", "auto", false],
    ["0.0.0.0", "true", true],
    ["127.0.0.1", "auto", true],
    ["127.0.0.1", "false", false],
  ])(
    "on the host %s, with PENSTOCK_LIVE_EVENTS=%s, are shown: %s",
    async (host, setting, isShown) => {
      const gateway = await startTestGateway({
        env: {
          PENSTOCK_ADMIN_HOST: host,
          PENSTOCK_LIVE_EVENTS: setting,
          PENSTOCK_ADMIN_AUTH: "off",
        },
      });
      onTestFinished(() => gateway.stop());
      const project = await gateway.project();
      await gateway.post("/capture/", {
        api_key: project.key,
        event: "a secret name",
        distinct_id: "u",
      });
      const viewer = await watch(gateway.adminUrl);
      const states = () =>
        viewer.said<{
          showsEvents: boolean;
          counts: { events: unknown[] };
          store: { connected: boolean };
        }>("state");
      await until(() => states().at(-1)?.store.connected === true && states().length > 1);
      expect(states().at(-1)?.showsEvents).toBe(isShown);
      expect(states().at(-1)?.counts.events).toEqual([
        { outcome: "stored", reason: "none", count: 1 },
      ]);
      if (isShown) await until(() => viewer.events().length === 1);
      expect(await consumersOn(gateway.nats)).toBe(isShown ? 2 : 0);
      expect(viewer.events()).toHaveLength(isShown ? 1 : 0);
    },
  );
});
