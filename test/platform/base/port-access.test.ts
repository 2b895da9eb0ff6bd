import { describe, expect, test } from "vitest";
import {
  exposureOf,
  ownAuthorization,
  PortAccess,
} from "../../../src/platform/base/port-access.ts";

const [admin, nextAdmin, read] = ["an-admin-token-01", "an-admin-token-02", "a-read-only-token"];
const access = new PortAccess({ admin: [admin, nextAdmin], read: [read] });

function asking(authorization?: string) {
  return { headers: authorization === undefined ? {} : { authorization } };
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

test("a process queries another process's port with its strongest token", () => {
  const both = { adminAuth: "auto", adminTokenFile: [admin, nextAdmin], readToken: read } as const;
  expect(ownAuthorization(both)).toEqual({ Authorization: `Bearer ${admin}` });
  const { adminTokenFile: _, ...onlyRead } = both;
  expect(ownAuthorization(onlyRead)).toEqual({ Authorization: `Bearer ${read}` });
  expect(ownAuthorization({ adminAuth: "off", adminToken: admin })).toEqual({});
});
