import { afterAll } from "vitest";
import {
  findClickHouse,
  startClickHouse,
  type TestClickHouse,
  type TestClickHouseOptions,
} from "./clickhouse.ts";
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

/**
 * Returns a list for `describe.each`. It contains one server, or is empty if this host cannot run
 * ClickHouse.
 */
export async function clickHousesForFile(
  options: TestClickHouseOptions = {},
): Promise<TestClickHouse[]> {
  const program = await findClickHouse();
  if (program === undefined) return [];
  const server = await startClickHouse(program, options);
  afterAll(() => server.remove());
  return [server];
}
