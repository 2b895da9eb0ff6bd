// A gateway, a nats-server or a PostgreSQL for all tests of a file, which ends after the last of
// them. It is awaited at the top of the file, so one that does not start fails the file.

import { afterAll } from "vitest";
import { startTestGateway, type TestGateway, type TestGatewayOptions } from "./gateway.ts";
import { startNatsServer, type TestNatsServer, type TestNatsServerOptions } from "./nats-server.ts";
import { startPostgres, type TestPostgres, type TestPostgresOptions } from "./postgres.ts";

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

export async function postgresForFile(options: TestPostgresOptions = {}): Promise<TestPostgres> {
  const server = await startPostgres(options);
  afterAll(() => server.remove());
  return server;
}
