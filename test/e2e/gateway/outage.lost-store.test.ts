import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import {
  type Answer,
  startTestGateway,
  type TestGateway,
  type TestProject,
  until,
} from "../../kit/gateway.ts";

let gateway: TestGateway;

afterEach(async () => {
  await gateway.stop();
});

function capture(project: TestProject, name: string, text = ""): Promise<Answer> {
  const properties = { text };
  return gateway.post("/capture/", {
    api_key: project.key,
    event: name,
    distinct_id: "u",
    properties,
  });
}

function expectRetryable(answer: Answer): void {
  expect(answer.status).toBe(503);
  const retryAfter = Number(answer.headers.get("retry-after"));
  expect(retryAfter).toBeGreaterThanOrEqual(1);
  expect(retryAfter).toBeLessThanOrEqual(5);
}

async function readiness(): Promise<number> {
  const response = await fetch(`${gateway.adminUrl}/readyz`);
  await response.text();
  return response.status;
}

async function names(project: TestProject): Promise<unknown[]> {
  return (await gateway.events(project)).map((event) => event["event"]);
}

describe("while nats-server is down, the gateway", () => {
  test("stores a request in flight and later small requests after the restart", async () => {
    gateway = await startTestGateway();
    const project = await gateway.project();
    expect(await readiness()).toBe(200);
    gateway.nats.freeze();
    const waiting = capture(project, "waited");
    await until(async () => /penstock_frames_unacked 1$/m.test(await gateway.metrics()));
    await gateway.nats.kill();
    await until(async () => (await readiness()) === 503);
    const later = capture(project, "later");
    const refused = await capture(project, "refused", "x".repeat(300_000));
    expectRetryable(refused);
    expect(refused.json["code"]).toBe("unavailable");
    await gateway.nats.restart();
    expect(await waiting).toMatchObject({ status: 200, json: { accepted: 1 } });
    expect(await later).toMatchObject({ status: 200, json: { accepted: 1 } });
    await until(async () => (await readiness()) === 200);
    expect(await capture(project, "after")).toMatchObject({ status: 200 });
    expect(await names(project)).toEqual(["waited", "later", "after"]);
  });

  test("stores every small request after an outage of five seconds", async () => {
    gateway = await startTestGateway();
    const project = await gateway.project();
    gateway.nats.freeze();
    const thawed = delay(5_000).then(() => gateway.nats.thaw());
    const answers: Promise<Answer>[] = [];
    for (let number = 0; number < 50; number++) {
      answers.push(capture(project, `e${number}`));
      await delay(90);
    }
    await thawed;
    for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
    expect((await names(project)).sort()).toEqual(answers.map((_, index) => `e${index}`).sort());
  });

  test("limits the memory of waiting requests", async () => {
    gateway = await startTestGateway({
      env: {
        PENSTOCK_INFLIGHT_BYTES_MAX: "1048576",
        PENSTOCK_BODY_BYTES_MAX: "524288",
        PENSTOCK_INFLATED_BYTES_MAX: "524288",
      },
    });
    const project = await gateway.project();
    await gateway.nats.kill();
    await until(async () => (await readiness()) === 503);
    const answers = Array.from({ length: 20 }, (_, index) =>
      capture(project, `e${index}`, "x".repeat(100_000)),
    );
    const first = await Promise.race(answers);
    expectRetryable(first);
    expect(first.json["code"]).toBe("overloaded");
    await gateway.nats.restart();
    const stored = (await Promise.all(answers)).filter(({ status }) => status === 200).length;
    expect(stored).toBeGreaterThan(5);
    expect(stored).toBeLessThan(12);
    expect(await names(project)).toHaveLength(stored);
  });

  test("sends a Retry-After that grows during the outage", async () => {
    gateway = await startTestGateway({
      env: { PENSTOCK_REQUEST_TIMEOUT_MS: "200", PENSTOCK_ACK_TIMEOUT_MS: "100" },
    });
    const project = await gateway.project();
    const retryAfter = async () => {
      const answer = await capture(project, "refused");
      expect(answer.json["code"]).toMatch(/^(unavailable|timeout)$/);
      return Number(answer.headers.get("retry-after"));
    };
    for (let outage = 0; outage < 2; outage++) {
      await gateway.nats.kill();
      expect(await retryAfter()).toBeLessThanOrEqual(2);
      await until(async () => (await retryAfter()) >= 4);
      await gateway.nats.restart();
      await until(async () => (await capture(project, "stored")).status === 200);
    }
  });

  test("returns timeout if no acknowledgement arrives", async () => {
    gateway = await startTestGateway({
      env: { PENSTOCK_REQUEST_TIMEOUT_MS: "600", PENSTOCK_ACK_TIMEOUT_MS: "150" },
    });
    const project = await gateway.project();
    gateway.nats.freeze();
    const answer = await capture(project, "late");
    expectRetryable(answer);
    expect(answer.json["code"]).toBe("timeout");
    gateway.nats.thaw();
    await until(async () => (await capture(project, "after")).status === 200);
    const stored = await names(project);
    expect(stored.filter((name) => name === "late").length).toBeLessThanOrEqual(1);
    expect(stored).toContain("after");
  });

  test("sends one answer to a batch in many frames after nats-server returns", async () => {
    gateway = await startTestGateway();
    const project = await gateway.project();
    const batch = Array.from({ length: 6_000 }, (_, index) => ({
      event: `e${index}`,
      distinct_id: "u",
      properties: { text: "x".repeat(300) },
    }));
    gateway.nats.freeze();
    const answer = gateway.post("/batch/", {
      api_key: project.key,
      batch,
      historical_migration: true,
    });
    await until(async () => /penstock_frames_unacked [1-9]/m.test(await gateway.metrics()));
    await gateway.nats.restart();
    expect(await answer).toMatchObject({ status: 200, json: { accepted: 6_000 } });
    const events = await gateway.events(project, "historical");
    expect(events.map((event) => event["event"])).toEqual(batch.map((event) => event.event));
  });
});
