import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { readAddress } from "../../../../src/readers/sinks/clickhouse/address.ts";
import { ClickHouseClient } from "../../../../src/readers/sinks/clickhouse/client.ts";

test("the ClickHouse client reports an https address of a port without TLS", async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = new ClickHouseClient(readAddress(`https://me:secret@127.0.0.1:${port}`));
  onTestFinished(() => client.close());
  await expect(client.run("ask", "SELECT 1")).rejects.toThrow(
    `ask ClickHouse at https://127.0.0.1:${port}: it does not use TLS: write http://`,
  );
});
