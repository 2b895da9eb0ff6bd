import { afterEach, describe, expect, test, vi } from "vitest";
import { exposureOf, ownSignature, PortAccess } from "../../../src/platform/base/port-access.ts";

const [admin, nextAdmin, read] = ["an-admin-token-01", "an-admin-token-02", "a-read-only-token"];
const access = new PortAccess({ admin: [admin, nextAdmin], read: [read] });

function asking(authorization?: string, url = "/metrics", method = "GET") {
  return { headers: authorization === undefined ? {} : { authorization }, url, method };
}

describe("the access to a port with tokens", () => {
  test.each([
    [undefined, "missing_token", "missing_token"],
    [`Bearer ${admin}`, undefined, undefined],
    [`Bearer ${nextAdmin}`, undefined, undefined],
    [`bearer   ${admin} `, undefined, undefined],
    [`Bearer ${read}`, undefined, "read_only_token"],
    [`Bearer ${admin}x`, "invalid_token", "invalid_token"],
    [`Bearer ${admin.slice(0, -1)}`, "invalid_token", "invalid_token"],
    [`Bearer ${admin} ${admin}`, "invalid_token", "invalid_token"],
    [`Basic ${admin}`, "invalid_token", "invalid_token"],
    [admin, "invalid_token", "invalid_token"],
    ["Bearer ", "invalid_token", "invalid_token"],
    ["", "invalid_token", "invalid_token"],
  ])("with the header %j: a read gets %j, a change gets %j", (header, ofRead, ofChange) => {
    expect(access.problemOf(asking(header), "read")).toBe(ofRead);
    expect(access.problemOf(asking(header), "admin")).toBe(ofChange);
  });

  test("is free if no token is set", () => {
    const free = new PortAccess({ admin: [], read: [] });
    expect(free.needsToken).toBe(false);
    expect(free.problemOf(asking("Bearer anything"), "admin")).toBeUndefined();
  });

  test("is admin only if only an admin token is set", () => {
    const onlyAdmin = new PortAccess({ admin: [admin], read: [] });
    expect(onlyAdmin.problemOf(asking(`Bearer ${read}`), "read")).toBe("invalid_token");
  });
});

test.each([
  ["127.0.0.1", { adminAuth: "auto" }, "protected"],
  ["::1", { adminAuth: "auto" }, "protected"],
  ["localhost", { adminAuth: "off" }, "protected"],
  ["0.0.0.0", { adminAuth: "auto" }, "lacks token"],
  ["watch.internal", { adminAuth: "auto" }, "lacks token"],
  ["0.0.0.0", { adminAuth: "off" }, "open"],
  ["0.0.0.0", { adminAuth: "off", adminToken: admin }, "open"],
  ["0.0.0.0", { adminAuth: "auto", adminToken: admin }, "protected"],
  ["0.0.0.0", { adminAuth: "auto", readTokenFile: [read] }, "protected"],
] as const)("a port on %s with %j is: %s", (host, settings, exposure) => {
  expect(exposureOf(host, settings)).toBe(exposure);
});

describe("a request to another process's port", () => {
  const both = { adminAuth: "auto", adminTokenFile: [admin, nextAdmin], readToken: read } as const;
  const target = new URL("http://127.0.0.1:9465/projects/shop/persons?distinct_id=a%26b");
  const path = target.pathname + target.search;
  const headerOf = (settings: Parameters<typeof ownSignature>[0]) =>
    ownSignature(settings)(target)["Authorization"];

  afterEach(() => void vi.useRealTimers());

  test("is signed with the strongest token, and contains no token", () => {
    const { adminTokenFile: _, ...onlyRead } = both;
    const [signed, signedToRead] = [headerOf(both), headerOf(onlyRead)];
    expect(access.problemOf(asking(signed, path), "admin")).toBeUndefined();
    expect(access.problemOf(asking(signedToRead, path), "read")).toBeUndefined();
    expect(access.problemOf(asking(signedToRead, path), "admin")).toBe("read_only_token");
    for (const token of [admin, nextAdmin, read])
      for (const sent of [signed, signedToRead]) expect(sent).not.toContain(token);
    expect(headerOf({ adminAuth: "off", adminToken: admin })).toBeUndefined();
  });

  test("has a signature for one path, method, token and minute", () => {
    const signed = headerOf(both);
    for (const other of ["/projects/shop/persons?distinct_id=b", "/metrics", ""])
      expect(access.problemOf(asking(signed, other), "read")).toBe("invalid_token");
    expect(access.problemOf(asking(signed, path, "POST"), "admin")).toBe("invalid_token");
    const others = new PortAccess({ admin: ["another-token-0001"], read: [] });
    expect(others.problemOf(asking(signed, path), "read")).toBe("invalid_token");
    for (const [seconds, problem] of [
      [-70, "invalid_token"],
      [-50, undefined],
      [50, undefined],
      [70, "invalid_token"],
    ] as const) {
      vi.useFakeTimers({ now: Date.now() + seconds * 1_000 });
      expect(access.problemOf(asking(signed, path), "read"), `${seconds} s`).toBe(problem);
      vi.useRealTimers();
    }
  });
});
