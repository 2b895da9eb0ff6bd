import { JetStreamApiError, type StreamInfo } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import {
  apiCodes,
  bytesMaxOf,
  isApiError,
  isFromLeader,
  isNotReady,
  noRoomCodes,
} from "../../../src/platform/nats/api.ts";

function errorOf(code: number): JetStreamApiError {
  return new JetStreamApiError({ code: 500, err_code: code, description: "" });
}

describe("a JetStream API answer", () => {
  test("is an error only if it has an error code", () => {
    const missing = errorOf(apiCodes.streamNotFound);
    expect(isApiError(missing, apiCodes.streamNotFound)).toBe(true);
    expect(isApiError(missing, apiCodes.notEnabled)).toBe(false);
    expect(isApiError({ code: apiCodes.streamNotFound }, apiCodes.streamNotFound)).toBe(false);
  });

  test("has a code that shows if JetStream is not ready yet", () => {
    const { notEnabled, clusterNotLeader, clusterNoPeers } = apiCodes;
    for (const code of [notEnabled, clusterNotLeader, clusterNoPeers])
      expect(isNotReady(errorOf(code)), String(code)).toBe(true);
    for (const code of [...noRoomCodes, apiCodes.streamNotFound, apiCodes.noLimits])
      expect(isNotReady(errorOf(code)), String(code)).toBe(false);
    expect(isNotReady(new Error("timeout"))).toBe(false);
  });

  test("has a different name for each error code", () => {
    const codes = Object.values(apiCodes);
    expect(new Set(codes).size).toBe(codes.length);
  });

  test("is from the leader unless it names another leader", () => {
    const by = (cluster: object | undefined) =>
      isFromLeader({ cluster } as unknown as Pick<StreamInfo, "cluster">);
    expect(by(undefined)).toBe(true);
    expect(by({ leader: "n1" })).toBe(true);
    expect(by({ leader: "n1", replicas: [{ name: "n2" }] })).toBe(true);
    expect(by({ leader: "n2", replicas: [{ name: "n2" }] })).toBe(false);
    expect(by({ leader: "" })).toBe(false);
    expect(by({ replicas: [{ name: "n2" }] })).toBe(false);
  });

  test.each([
    [0, Number.POSITIVE_INFINITY],
    [-1, Number.POSITIVE_INFINITY],
    [1_024, 1_024],
  ])("with max_bytes %d has the limit %d", (max_bytes, bytes) => {
    expect(bytesMaxOf({ max_bytes })).toBe(bytes);
  });
});
