import { expect, test } from "vitest";
import { openBucket, projectValue } from "../../../../src/gateway/projects/registry/bucket.ts";
import { newPlace, registryOn, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const projects = 60;

test("the registry reads many projects with at most two requests", async () => {
  const place = newPlace();
  const bucket = await openBucket(rig.connection, place);
  for (let index = 0; index < projects; index++) {
    const id = `p${index}`;
    await bucket.put(id, projectValue({ id, name: id, keys: [`phc_${id}`], enabled: true }));
  }
  let questions = 0;
  const connection = new Proxy(rig.connection, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (name !== "request") return value.bind(target);
      return (subject: string, ...more: unknown[]) => {
        if (subject.startsWith("$JS.API.STREAM.MSG.GET.")) questions++;
        return value.call(target, subject, ...more);
      };
    },
  });
  const registry = await registryOn({ ...rig, connection }, place);
  expect(registry.projectsKnown).toBe(projects);
  expect(questions).toBeLessThanOrEqual(2);
});
