// The closed sets of words that the effects write into tables, metrics and answers. types.ts
// derives a type from each set.

/** The classes in which events are counted, in the order in which commands display them. */
export const usageClasses = [
  "identified",
  "anonymous",
  "identify",
  "alias",
  "group_identify",
  "survey",
] as const;

/** The kinds of events that link two ids. */
export const linkKinds = ["identify", "alias", "merge"] as const;

/** The outcomes of a link between two ids. The guide on people and groups lists them too. */
export const linkOutcomes = [
  "merged",
  "already_one",
  "refused_illegal_id",
  "refused_self",
  "refused_both_known",
  "refused_cap",
] as const;

/**
 * The reasons for which an event, or a part of an event, could not be applied. The docs list them
 * too.
 */
export const rejectedReasons = [
  "not_json",
  "not_a_record",
  "wrong_project",
  "invalid_field",
  "too_deep",
  "number_out_of_range",
  "properties_too_large",
  "person_full",
  "group_full",
  "too_many_group_types",
  "name_too_long",
] as const;
