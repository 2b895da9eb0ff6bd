// What the row of an event has of the members of its properties. A change of such a member must
// change the row as well.

import { MemberLevel, type MemberName, RowPart } from "./found-members.ts";
import { PropertyShift } from "./table.ts";

/** Properties of which the row of the table has the type. */
const typedProperties: ReadonlyMap<string, number> = new Map([
  ["$survey_id", PropertyShift.SurveyId],
  ["$group_set", PropertyShift.GroupSet],
  ["$groups", PropertyShift.Groups],
  ["$process_person_profile", PropertyShift.ProcessPersonProfile],
  ["$current_url", PropertyShift.CurrentUrl],
  ["$screen_name", PropertyShift.ScreenName],
  ["$ignore_sent_at", PropertyShift.IgnoreSentAt],
]);
/** Properties of which the table has the offsets. */
const spannedProperties: ReadonlySet<string> = new Set([
  "$set",
  "$set_once",
  "$unset",
  "distinct_id",
  "$distinct_id",
]);

/** Returns the shift of a member's type in Row.PropertyTypes, or a value of RowPart. */
export function rowPartOf({ level, name }: MemberName): number {
  if (level !== MemberLevel.Properties) return RowPart.None;
  return spannedProperties.has(name) ? RowPart.Span : (typedProperties.get(name) ?? RowPart.None);
}
