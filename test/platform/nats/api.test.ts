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

describe("what JetStream's API answers is read in one way", () => {
  test("an error is told by its code, and by nothing that only looks like it", () => {
    const missing = errorOf(apiCodes.streamNotFound);
    expect(isApiError(missing, apiCodes.streamNotFound)).toBe(true);
    expect(isApiError(missing, apiCodes.notEnabled)).toBe(false);
    expect(isApiError({ code: apiCodes.streamNotFound }, apiCodes.streamNotFound)).toBe(false);
  });

  test("what may pass by waiting is not ready, what lacks room or is refused is not that", () => {
    const { notEnabled, clusterNotLeader, clusterNoPeers } = apiCodes;
    for (const code of [notEnabled, clusterNotLeader, clusterNoPeers])
      expect(isNotReady(errorOf(code)), String(code)).toBe(true);
    for (const code of [...noRoomCodes, apiCodes.streamNotFound, apiCodes.noLimits])
      expect(isNotReady(errorOf(code)), String(code)).toBe(false);
    expect(isNotReady(new Error("timeout"))).toBe(false);
  });

  test("no two names stand for one code", () => {
    const codes = Object.values(apiCodes);
    expect(new Set(codes).size).toBe(codes.length);
  });

  test("a leader says it who names no other member as the leader", () => {
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
  ])("max_bytes %d is %d", (max_bytes, bytes) => {
    expect(bytesMaxOf({ max_bytes })).toBe(bytes);
  });
});
