import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ClickHouseClient, readAddress } from "../../../../src/readers/sinks/clickhouse/client.ts";

test("the ClickHouse error for a port without TLS states the cause", async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = new ClickHouseClient(readAddress(`https://me:secret@127.0.0.1:${port}`));
  onTestFinished(() => client.close());
  await expect(client.run("ask", "SELECT 1")).rejects.toThrow(
    `cannot ask ClickHouse at https://127.0.0.1:${port}: the server does not use TLS: use http:// in the URL`,
  );
});

test.each([
  ["http://ch", "http://ch:8123", "/"],
  ["https://ch", "https://ch:8443", "/"],
  ["http://ch:80/", "http://ch:80", "/"],
  ["https://me:pass@ch:443/proxy/?insert_quorum=2", "https://ch:443/proxy", "/proxy/"],
  ["http://me:12@[::1]:9000", "http://[::1]:9000", "/"],
  ["http://me:12@ch", "http://ch:8123", "/"],
])("the ClickHouse address of %s is %s", (text, shown, path) => {
  expect(readAddress(text)).toMatchObject({ shown, path });
});

test("user and password of a ClickHouse URL are sent as headers", () => {
  const address = readAddress("https://me%40x:p%3Ass@[::1]/?insert_quorum=2&async_insert=0");
  expect(address).toMatchObject({
    host: "::1",
    headers: { "x-clickhouse-user": "me@x", "x-clickhouse-key": "p:ss" },
    settings: { insert_quorum: "2", async_insert: "0" },
  });
});

test("an invalid password in a ClickHouse URL is reported without showing it", () => {
  const read = (): unknown => readAddress("https://me:geh%C3%B6im@ch");
  expect(read).toThrow(/must be visible ASCII/);
  expect(read).not.toThrow(/geh/);
});
