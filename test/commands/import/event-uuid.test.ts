import { expect, test } from "vitest";
import { isUuidText, LineHash, uuidOfSource } from "../../../src/commands/import/event-uuid.ts";

test.each([
  [["segment", "m-0"], "2836c45b-cf2b-8a4d-bfb0-d9d67361ef53"],
  [["segment", "m-1"], "c9f6ea8c-d3bc-8b0f-aa3b-c93b6084c04f"],
  [["segment", "m-2"], "2db7d4f0-8cc5-8b70-b7b7-6a6e811123e9"],
  [["segment", "m-3"], "6cabcb6d-9867-8555-aed3-a81f8359d66b"],
  [["mixpanel", "seen", 1720267200, "u", "i"], "d8bc5a4a-6d14-8559-99af-67ae75c86bb9"],
  [["mixpanel", "é", undefined, null, 7], "0156bd2d-a3e7-8539-b75a-88bb4a478b21"],
])("import derives from %j the uuid %s", (parts, uuid) => {
  expect(uuidOfSource(parts)).toBe(uuid);
  expect(isUuidText(uuid)).toBe(true);
});

test("import derives the same uuids from lines as earlier releases", () => {
  const hash = new LineHash();
  const found = ["{}", '{"a":1}', "x".repeat(300_000), ""].map((line) => {
    hash.add(Buffer.from(line));
    return [hash.uuid(), hash.fingerprint()];
  });
  expect(found).toEqual([
    ["ca3d163b-ab05-8381-a272-26140568f3be", "yj0WO6sFU4GCciYUBWjzvvfqrBh869doeOC2Pp5EI1Y"],
    ["861ce3a3-50d4-8170-aa35-881ae9a98030", "hhzjo1DUEXDaNYga6amAMFM4sHjIDMYet4DaV1wNXjI"],
    ["6431dd7a-9b1c-8eab-b3f2-d36cb885516a", "ZDHdepscHqsj8tNsuIVRanDFYplavX_lyUSs9WnC9Qk"],
    ["20007210-ee9e-83ae-8888-dbf95b981259", "IAByEO6ew664iNv5W5gSWdnspVmePihXPBk6-Vxhec4"],
  ]);
});
