import { expect, test } from "vitest";
import { InflationPool, type InflationWork } from "../../../src/gateway/body/pooled-inflation.ts";

const mebibyte = 1_048_576;

function poolOf() {
  const pool = new InflationPool(() => 0);
  const noted: string[] = [];
  const atWork: InflationWork[] = [];
  function add(name: string, { group = name, isKnown = true, mebibytes = 1, bytesLeft = 10 } = {}) {
    const work = {
      group,
      isKnown,
      bytesLeft,
      deadlineMs: 1,
      memoryBytes: mebibytes * mebibyte,
      run() {
        pool.began(work);
        noted.push(name);
        atWork.push(work);
      },
      late: () => {},
    };
    pool.add(work);
    return work;
  }
  return {
    add,
    said: () => noted.splice(0).join(" "),
    again: () => pool.again(atWork.shift()!),
    async leave() {
      pool.leave(atWork.shift()!);
      await Promise.resolve();
    },
  };
}

test("the inflation pool limits bodies without a known key to one slot", () => {
  const { add, again, said } = poolOf();
  for (const group of ["x", "y", "z"]) add(`?${group}`, { isKnown: false });
  expect(said()).toBe("?x");
  add("project");
  expect(said()).toBe("project");
  again();
  expect(said()).toBe("?y");
});

test("the inflation pool counts a body towards its project after finding the key", () => {
  const { add, again, said } = poolOf();
  const found = add("?x", { isKnown: false });
  add("?y", { isKnown: false });
  expect(said()).toBe("?x");
  Object.assign(found, { isKnown: true, group: "project" });
  again();
  expect(said()).toBe("?y ?x");
});

test("the inflation pool limits each project to half of the memory", async () => {
  const { add, leave, said } = poolOf();
  add("a1", { group: "a", mebibytes: 40 });
  add("a2", { group: "a", mebibytes: 40 });
  expect(said()).toBe("a1");
  add("?x", { isKnown: false, mebibytes: 40 });
  expect(said()).toBe("?x");
  await leave();
  expect(said()).toBe("a2");
  add("?y", { isKnown: false, mebibytes: 40 });
  add("b", { mebibytes: 40 });
  await leave();
  expect(said()).toBe("?y");
  await leave();
  expect(said()).toBe("b");
});

test("the inflation pool starts an oversized body only when the pool is empty", async () => {
  const { add, leave, said } = poolOf();
  add("huge", { mebibytes: 1_000 });
  add("next", { mebibytes: 1 });
  expect(said()).toBe("huge");
  await leave();
  expect(said()).toBe("next");
});
