import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_DRAIN_DELAY_MS: "1500" } });

test("the gateway stores events during the drain delay", async () => {
  const project = await gateway.project();
  const closed = gateway.close();
  const readyz = await fetch(`${gateway.adminUrl}/readyz`);
  expect(readyz.status).toBe(503);
  expect(await readyz.text()).toContain("shutting down");

  const answer = await gateway.post("/capture/", {
    api_key: project.key,
    event: "late",
    distinct_id: "d",
  });
  expect(answer.status).toBe(200);
  await closed;
  await until(async () => {
    const refused = await fetch(gateway.url, { method: "POST" }).then(
      () => false,
      () => true,
    );
    return refused;
  });
  expect((await gateway.events(project)).map(({ event }) => event)).toEqual(["late"]);
});
