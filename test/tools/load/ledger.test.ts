import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { load, sayStored, short, standIn } from "./load-kit.ts";

const gateway = await gatewayForFile();
const project = await gateway.project();

function loadThrough(url: string, ...args: string[]) {
  return load(
    "--url",
    url,
    "--key",
    project.key,
    "--nats-url",
    gateway.nats.url,
    "--rate",
    "60",
    ...short,
    ...args,
  );
}

async function passOn(body: Buffer): Promise<void> {
  const answer = await gateway.post("/capture/", body);
  expect(answer.status).toBe(200);
}

describe("the load test", () => {
  test("reports an acknowledged event that is not stored", async () => {
    let requests = 0;
    const url = await standIn(async (body, response) => {
      requests += 1;
      if (requests % 3 !== 0) await passOn(body);
      sayStored(response);
    });
    const { code, result } = await loadThrough(url);
    expect(result.stored).toMatchObject({
      acknowledged: 60,
      storedOnce: 40,
      storedMoreThanOnce: 0,
      lost: 20,
    });
    expect(result.failures).toEqual([
      expect.stringContaining("20 acknowledged events are not in the streams"),
    ]);
    expect(code).toBe(1);
  });

  test("reports an event that is stored twice", async () => {
    const url = await standIn(async (body, response) => {
      await passOn(body);
      await passOn(body);
      sayStored(response);
    });
    const { code, result } = await loadThrough(url);
    expect(result.stored).toMatchObject({
      acknowledged: 60,
      storedOnce: 0,
      storedMoreThanOnce: 60,
      lost: 0,
    });
    expect(result.failures).toEqual([
      expect.stringContaining("60 events are stored more than once"),
    ]);
    expect(code).toBe(1);
  });

  test("reports no loss for an event that is stored after a timeout", async () => {
    const url = await standIn(async (body, response) => {
      await passOn(body);
      response
        .writeHead(503, { "content-type": "application/problem+json" })
        .end('{"code":"timeout"}');
    });
    const { result } = await loadThrough(url);
    expect(result.answers).toEqual({ "503 timeout": 60 });
    expect(result.stored).toMatchObject({
      acknowledged: 0,
      storedOnce: 60,
      storedThoughUnknown: 60,
      lost: 0,
    });
  });

  test.each<[string, string[]]>([
    ["it is not sent again", []],
    ["a retry may store it once more", ["--retry"]],
  ])("reports an event that is stored twice after one timeout, although %s", async (_, options) => {
    const timedOut = new Set<string>();
    const url = await standIn(async (body, response) => {
      const text = body.toString();
      const timesOut = !timedOut.has(text);
      timedOut.add(text);
      await passOn(body);
      if (timesOut) await passOn(body);
      if (timesOut) response.writeHead(503, { "retry-after": "0" }).end('{"code":"timeout"}');
      else sayStored(response);
    });
    const { code, result } = await loadThrough(url, ...options);
    expect(result.stored).toMatchObject({
      storedMoreThanOnce: 60,
      storedAgainAfterUnknown: 0,
      lost: 0,
    });
    expect(result.failures).toContainEqual(
      expect.stringContaining("60 events are stored more than once"),
    );
    expect(code).toBe(1);
  });

  test("reports no error for an event stored twice after a retry", async () => {
    const timedOut = new Set<string>();
    const url = await standIn(async (body, response) => {
      const text = body.toString();
      const timesOut = timedOut.size < 5 && !timedOut.has(text);
      if (timesOut) timedOut.add(text);
      await passOn(body);
      if (timesOut) response.writeHead(503, { "retry-after": "0" }).end('{"code":"timeout"}');
      else sayStored(response);
    });
    const { code, result } = await loadThrough(url, "--retry");
    expect(result.requests).toMatchObject({ sent: 60, retries: 5, acknowledged: 60 });
    expect(result.stored).toMatchObject({
      storedOnce: 55,
      storedAgainAfterUnknown: 5,
      storedMoreThanOnce: 0,
      lost: 0,
    });
    expect(code).toBe(0);
  });
});
