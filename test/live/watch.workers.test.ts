import { Agent } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../kit/gateway.ts";
import { key, natsWithProject, postOne, workersOn } from "../kit/workers.ts";
import { consumersOn, watch } from "./live-kit.ts";

const connections = 16;

test("one live page shows the counts, errors and events of two workers", async () => {
  const nats = await natsWithProject();
  const gateway = await workersOn(nats, "--workers", "2");
  expect((await fetch(`${gateway.adminUrl}/`)).status).toBe(200);
  const viewer = await watch(gateway.adminUrl);
  const agents = Array.from(
    { length: connections },
    () => new Agent({ keepAlive: true, maxSockets: 1 }),
  );
  onTestFinished(() => agents.forEach((agent) => void agent.destroy()));
  await Promise.all(agents.map((agent, index) => postOne(gateway.port, agent, String(index))));
  const refused = Array.from({ length: connections }, () =>
    fetch(`http://127.0.0.1:${gateway.port}/capture/`, {
      method: "POST",
      headers: { Connection: "close" },
      body: JSON.stringify({ api_key: key, event: "e", distinct_id: "u", properties: 1 }),
    }),
  );
  expect((await Promise.all(refused)).map(({ status }) => status)).toEqual(refused.map(() => 400));

  const state = () =>
    viewer
      .said<{ workers: number; ready: number; counts: Counts; publicPort: number }>("state")
      .at(-1);
  await until(() => state()?.counts.problems["invalid_properties"] === connections);
  await until(() => viewer.events().length === connections);
  expect(state()).toMatchObject({ workers: 2, ready: 2, publicPort: gateway.port });
  expect(state()?.counts.answers["200"]).toBe(connections);
  const times = () =>
    (viewer.said<{ times: number }[]>("clientWarnings").at(-1) ?? []).reduce(
      (sum, one) => sum + one.times,
      0,
    );
  await until(() => times() === connections);
  for (const { projectId } of viewer.said<{ projectId: string }[]>("clientWarnings").at(-1) ?? [])
    expect(projectId).toBe("shop");
  viewer.leave();
  await until(async () => (await consumersOn(nats)) === 0);
});

interface Counts {
  readonly answers: Record<string, number>;
  readonly problems: Record<string, number>;
}
