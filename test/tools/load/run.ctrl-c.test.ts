import { expect, test } from "vitest";
import type { Result } from "../../../bench/load/result.ts";
import { until } from "../../kit/gateway.ts";
import { sayStored, standIn, startLoad } from "./load-kit.ts";

test("SIGINT ends the load test with a report", async () => {
  let requests = 0;
  const url = await standIn((_, response) => {
    requests += 1;
    sayStored(response);
  });
  const { child, finished } = startLoad(
    "--url",
    url,
    "--rate",
    "100",
    "--duration",
    "600",
    "--json",
  );
  await until(() => requests >= 20);
  child.kill("SIGINT");
  const { code, out } = await finished;
  const result = JSON.parse(out) as Result;
  expect(result.interrupted).toBe(true);
  expect(result.requests.due).toBe(requests);
  expect(result.requests.acknowledged).toBe(requests);
  expect(code).toBe(0);
});
