// The port that the effects beside a gateway are to take, where the one of the settings is taken:
// the default one moves and says so, one that was given does not.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { defaultEffectsPort, requireEffectsPort } from "../../src/app/effects-port.ts";

async function takenPort(): Promise<number> {
  const stranger = createServer().listen(0, "127.0.0.1");
  await once(stranger, "listening");
  onTestFinished(() => void stranger.close());
  return (stranger.address() as AddressInfo).port;
}

test("the default port moves, and both ports are told", async () => {
  const place = { effectsHost: "127.0.0.1", effectsPort: await takenPort() };
  const told: object[] = [];
  const port = await defaultEffectsPort(place, { warn: (fields) => void told.push(fields) });
  expect(port).toBeGreaterThan(0);
  expect(port).not.toBe(place.effectsPort);
  expect(told).toEqual([
    { ...place, instead: port, reason: expect.stringContaining("the port is taken") },
  ]);
});

test("one that was given is a fault with the setting and the way to who has it", async () => {
  const place = { effectsHost: "127.0.0.1", effectsPort: await takenPort() };
  await expect(requireEffectsPort(place)).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(
      `^Listen for .* port ${place.effectsPort}: the port is taken: set PENSTOCK_EFFECTS_PORT .*ss -ltnp sport = :${place.effectsPort}$`,
    ),
  });
  await requireEffectsPort({ ...place, effectsPort: 0 });
});
