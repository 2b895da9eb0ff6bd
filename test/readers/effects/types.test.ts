import { expect, test } from "vitest";
import { linkOutcomes, rejectedReasons, usageClasses } from "../../../src/readers/effects/types.ts";
import { incidentKinds } from "../../../src/readers/stream/resume.ts";
import { read } from "../../docs/docs-kit.ts";

test("the guide lists every incident, link outcome, rejection reason and usage class", () => {
  const guide = read("docs/guides/people-and-groups.md");
  const words = [...incidentKinds, ...linkOutcomes, ...rejectedReasons, ...usageClasses];
  expect(words.filter((word) => !guide.includes(`\`${word}\``))).toEqual([]);
});
