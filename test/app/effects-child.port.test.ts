import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { defaultEffectsPort, requireEffectsPort } from "../../src/app/effects-child.ts";

async function takenPort(): Promise<number> {
  const stranger = createServer().listen(0, "127.0.0.1");
  await once(stranger, "listening");
  onTestFinished(() => void stranger.close());
  return (stranger.address() as AddressInfo).port;
}

test("the effects use a free port if their default port is in use", async () => {
  const place = { effectsHost: "127.0.0.1", effectsPort: await takenPort() };
  const warnings: object[] = [];
  const port = await defaultEffectsPort(place, { warn: (fields) => void warnings.push(fields) });
  expect(port).toBeGreaterThan(0);
  expect(port).not.toBe(place.effectsPort);
  expect(warnings).toEqual([
    { ...place, instead: port, reason: expect.stringContaining("the port is taken") },
  ]);
});

test("the effects fail if their configured port is in use", async () => {
  const place = { effectsHost: "127.0.0.1", effectsPort: await takenPort() };
  await expect(requireEffectsPort(place)).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(
      `^cannot listen on .* port ${place.effectsPort} for effects queries: the port is taken: set PENSTOCK_EFFECTS_PORT .*ss -ltnp sport = :${place.effectsPort}\` shows it$`,
    ),
  });
  await requireEffectsPort({ ...place, effectsPort: 0 });
});
