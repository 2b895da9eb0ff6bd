// A gateway or a nats-server for all tests of a file, which ends after the last of them. It is
// awaited at the top of the file, so one that does not start fails the file.

import { afterAll } from "vitest";
import { startTestGateway, type TestGateway, type TestGatewayOptions } from "./gateway.ts";
import { startNatsServer, type TestNatsServer, type TestNatsServerOptions } from "./nats-server.ts";

export async function gatewayForFile(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startTestGateway(options);
  afterAll(() => gateway.stop());
  return gateway;
}

export async function natsServerForFile(
  options: TestNatsServerOptions = {},
): Promise<TestNatsServer> {
  const server = await startNatsServer(options);
  afterAll(() => server.remove());
  return server;
}
