// The closed sets of words in the tables, metrics and answers of the effects.

/** In the order in which commands display them. */
export const usageClasses = [
  "identified",
  "anonymous",
  "identify",
  "alias",
  "group_identify",
  "survey",
] as const;

export const linkKinds = ["identify", "alias", "merge"] as const;

/** The guide on people and groups lists them too. */
export const linkOutcomes = [
  "merged",
  "already_one",
  "refused_illegal_id",
  "refused_self",
  "refused_both_known",
  "refused_cap",
] as const;

/** The docs list them too. */
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
