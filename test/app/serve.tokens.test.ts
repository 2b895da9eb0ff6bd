import { expect, test } from "vitest";
import { ended, penstockWith, temporaryFolder } from "../kit/processes.ts";
import { asWorkers, natsWithProject, serveWith } from "../kit/workers.ts";

const tokens = {
  PENSTOCK_ADMIN_TOKEN: "an-admin-token-01",
  PENSTOCK_READ_TOKEN: "a-read-only-token",
};

test.each([
  ["up", "PENSTOCK_ADMIN_HOST", "admin"],
  ["up", "PENSTOCK_EFFECTS_HOST", "effects"],
  ["serve", "PENSTOCK_ADMIN_HOST", "admin"],
  ["effects", "PENSTOCK_EFFECTS_HOST", "effects"],
])("%s with %s=0.0.0.0 and no token fails with the fix", async (command, host, port) => {
  const settings = { [host]: "0.0.0.0", PENSTOCK_DATA_DIR: temporaryFolder() };
  const run = penstockWith(settings, command);
  expect(await ended(run)).toBe(2);
  expect(run.said.err).toContain(`cannot open the ${port} port on 0.0.0.0`);
  expect(run.said.err).toContain("set PENSTOCK_ADMIN_TOKEN or PENSTOCK_ADMIN_TOKEN_FILE");
  expect(run.said.err).toContain("PENSTOCK_ADMIN_AUTH=off");
});

test("workers on every address merge metrics for a request with a token", async () => {
  const nats = await natsWithProject();
  const env = { ...tokens, PENSTOCK_ADMIN_HOST: "0.0.0.0" };
  const { adminUrl } = await asWorkers(serveWith(env, nats, "--workers", "2"));
  const ask = async (token?: string) => {
    const headers: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};
    const response = await fetch(`${adminUrl}/metrics`, { headers });
    return { status: response.status, text: await response.text() };
  };
  expect((await ask()).status).toBe(401);
  const { status, text } = await ask(tokens.PENSTOCK_READ_TOKEN);
  expect(status).toBe(200);
  expect(text).toMatch(/^penstock_workers? 2$|worker="1"/m);
  expect((await fetch(`${adminUrl}/readyz`)).status).toBe(200);
});
