// Exports the numbers of the core under the names of table.ts. It must include every number that
// both C++ and JavaScript use.

#include "layout.h"

#include <string_view>

#include "change_items.h"
#include "event_scan.h"
#include "find_members.h"
#include "find_names.h"
#include "stored_lines.h"

namespace penstock {
namespace {

struct LayoutNumber {
  const char* name;
  size_t value;
};

uint32_t hash_of(uint32_t level, std::string_view name) noexcept {
  return member_hash(level, reinterpret_cast<const uint8_t*>(name.data()), name.size());
}

/** Returns the number of the bit of a name in quotes. */
size_t filter_bit_of(std::string_view name) noexcept {
  const uint64_t bit =
      member_bit(reinterpret_cast<const uint8_t*>(name.data()) + 1, name.size() - 2);
  size_t number = 0;
  while (bit >> number != 1) number++;
  return number;
}

const LayoutNumber kLayout[] = {
    {"TokenType.Absent", kAbsent},
    {"TokenType.Null", kNull},
    {"TokenType.False", kFalse},
    {"TokenType.True", kTrue},
    {"TokenType.Number", kNumber},
    {"TokenType.PlainString", kPlainString},
    {"TokenType.EscapedString", kEscapedString},
    {"TokenType.EmptyString", kEmptyString},
    {"TokenType.Object", kObject},
    {"TokenType.Array", kArray},
    {"ScanStatus.Ok", static_cast<size_t>(ScanStatus::kOk)},
    {"ScanStatus.Empty", static_cast<size_t>(ScanStatus::kEmpty)},
    {"ScanStatus.InvalidJson", static_cast<size_t>(ScanStatus::kInvalidJson)},
    {"ScanStatus.InvalidUtf8", static_cast<size_t>(ScanStatus::kInvalidUtf8)},
    {"ScanStatus.OutOfMemory", static_cast<size_t>(ScanStatus::kOutOfMemory)},
    {"ScanStatus.Unexplained", static_cast<size_t>(ScanStatus::kUnexplained)},
    {"ScanLimit.ExplainedAtOnceBytes", kExplainedAtOnceBytes},
    {"Header.ErrorOffset", kErrorOffset},
    {"Header.RootType", kRootType},
    {"Header.BatchType", kBatchType},
    {"Header.ItemCount", kItemCount},
    {"Header.RowCount", kRowCount},
    {"Header.KeyType", kKeyType},
    {"Header.KeyStart", kKeyType + 1},
    {"Header.KeyEnd", kKeyType + 2},
    {"Header.CreatedAtType", kCreatedAtType},
    {"Header.CreatedAtStart", kCreatedAtType + 1},
    {"Header.CreatedAtEnd", kCreatedAtType + 2},
    {"Header.HistoricalType", kHistoricalType},
    {"Header.SentAtType", kSentAtType},
    {"Header.SentAtStart", kSentAtType + 1},
    {"Header.SentAtEnd", kSentAtType + 2},
    {"Header.FirstItem", kFirstItem},
    {"Header.Malformed", kMalformed},
    {"Header.RepairedBytes", kRepairedBytes},
    {"Header.OtherKeyItem", kOtherKeyItem},
    {"Header.NonFinite", kNonFinite},
    {"Header.Words", kHeaderWords},
    {"Row.ItemStart", kItemStart},
    {"Row.ItemEnd", kItemEnd},
    {"Row.FieldTypes", kFieldTypes},
    {"Row.PropertyTypes", kPropertyTypes},
    {"Row.MoreTypes", kMoreTypes},
    {"Row.Words", kRowWords},
    {"Row.EventStart", kFirstFieldStart + 2 * kEvent},
    {"Row.EventEnd", kFirstFieldStart + 2 * kEvent + 1},
    {"Row.DistinctIdStart", kFirstFieldStart + 2 * kDistinctId},
    {"Row.DistinctIdEnd", kFirstFieldStart + 2 * kDistinctId + 1},
    {"Row.TimestampStart", kFirstFieldStart + 2 * kTimestamp},
    {"Row.TimestampEnd", kFirstFieldStart + 2 * kTimestamp + 1},
    {"Row.UuidStart", kFirstFieldStart + 2 * kUuid},
    {"Row.UuidEnd", kFirstFieldStart + 2 * kUuid + 1},
    {"Row.PropertiesStart", kFirstFieldStart + 2 * kProperties},
    {"Row.PropertiesEnd", kFirstFieldStart + 2 * kProperties + 1},
    {"Row.SetStart", kFirstFieldStart + 2 * kSet},
    {"Row.SetEnd", kFirstFieldStart + 2 * kSet + 1},
    {"Row.SetOnceStart", kFirstFieldStart + 2 * kSetOnce},
    {"Row.SetOnceEnd", kFirstFieldStart + 2 * kSetOnce + 1},
    {"Row.PropertiesDistinctIdStart", kFirstFieldStart + 2 * kPropertiesDistinctId},
    {"Row.PropertiesDistinctIdEnd", kFirstFieldStart + 2 * kPropertiesDistinctId + 1},
    {"FieldShift.Event", 4 * kEvent},
    {"FieldShift.DistinctId", 4 * kDistinctId},
    {"FieldShift.Timestamp", 4 * kTimestamp},
    {"FieldShift.Uuid", 4 * kUuid},
    {"FieldShift.Properties", 4 * kProperties},
    {"FieldShift.Set", 4 * kSet},
    {"FieldShift.SetOnce", 4 * kSetOnce},
    {"FieldShift.PropertiesDistinctId", 4 * kPropertiesDistinctId},
    {"PropertyShift.SurveyId", 4 * kSurveyId},
    {"PropertyShift.Set", 4 * kPropertySet},
    {"PropertyShift.GroupSet", 4 * kGroupSet},
    {"PropertyShift.Groups", 4 * kGroups},
    {"PropertyShift.ProcessPersonProfile", 4 * kProcessPersonProfile},
    {"PropertyShift.CurrentUrl", 4 * kCurrentUrl},
    {"PropertyShift.ScreenName", 4 * kScreenName},
    {"PropertyShift.IgnoreSentAt", 4 * kIgnoreSentAt},
    {"MoreShift.Item", kItemTypeShift},
    {"MoreShift.HasExtra", kHasExtraShift},
    {"MoreShift.Flags", kItemFlagsShift},
#define PENSTOCK_EXTRA(name)                                                      \
  {"Extra." #name "Start", 2 * k##name}, {"Extra." #name "End", 2 * k##name + 1}, \
      {"ExtraShift." #name, 4 * k##name},
    PENSTOCK_EXTRA_PARTS(PENSTOCK_EXTRA)
#undef PENSTOCK_EXTRA
        {"Extra.Types", kExtraTypes},
    {"Extra.Words", kExtraWords},
    {"ItemFlag.EscapedKey", kItemEscapedKey},
    {"ItemFlag.DuplicateKey", kItemDuplicateKey},
    {"ItemFlag.ReplacedCharacter", kItemReplacedCharacter},
    {"ItemFlag.TooDeep", kItemTooDeep},
    {"ItemFlag.LongNumber", kItemLongNumber},
    {"ItemFlag.EscapedInnerKey", kItemEscapedInnerKey},
    {"Line.Flags", kLineFlags},
    {"Line.Types", kLineTypes},
    {"Line.ReceivedAt", kLineReceivedAt},
    {"Line.Timestamp", kLineTimestamp},
    {"Line.TimestampSent", kLineTimestampSent},
    {"Line.SentAt", kLineSentAt},
    {"Line.UuidHigh", kLineUuidHigh},
    {"Line.UuidLow", kLineUuidLow},
    {"Line.IdHigh", kLineIdHigh},
    {"Line.IdLow", kLineIdLow},
    {"Line.Parts", kLineParts},
    {"Line.Words", kLineWords},
#define PENSTOCK_PART(name) {"Part." #name, kPart##name},
    PENSTOCK_LINE_PARTS(PENSTOCK_PART)
#undef PENSTOCK_PART
        {"Part.Count", kPartCount},
    {"LineFlag.Written", kLineWritten},
    {"LineFlag.SameProject", kLineSameProject},
    {"LineFlag.PersonProfile", kLinePersonProfile},
    {"LineFlag.HasWrites", kLineHasWrites},
    {"LineFlag.PlainId", kLinePlainId},
    {"LineFlag.Historical", kLineHistorical},
    {"LineFlag.EscapedEvent", kLineEscapedEvent},
    {"LineFlag.Merge", kLineMerge},
    {"LineFlag.Automatic", kLineAutomatic},
    {"LineFlag.SameOrigin", kLineSameOrigin},
    {"LineShift.Kind", kLineKindShift},
    {"Found.Row", kFoundRow},
    {"Found.Path", kFoundPath},
    {"Found.Container", kFoundContainer},
    {"Found.Ordinal", kFoundOrdinal},
    {"Found.Start", kFoundStart},
    {"Found.ValueStart", kFoundValueStart},
    {"Found.ValueEnd", kFoundValueEnd},
    {"Found.Type", kFoundType},
    {"Found.Words", kFoundWords},
    {"FoundPath.Unnamed", kUnnamedPath},
    {"FoundPath.Container", kContainerPath},
    {"FoundPath.Schema", kSchemaPath},
    {"FoundType.Token", kFoundToken},
    {"FoundType.Sure", kFoundSure},
    {"Names.Flags", kNamesFlags},
    {"Names.FilterLow", kNamesFilterLow},
    {"Names.FilterHigh", kNamesFilterHigh},
    {"Names.Slots", kNamesSlots},
    {"Names.Words", kNamesWords},
    {"NamesFlag.ListsAll", kListsAll},
    {"NamesFlag.HasPersonPaths", kHasPersonPaths},
    {"NamesFlag.ListsContainers", kListsContainers},
    {"NameSlot.Hash", kSlotHash},
    {"NameSlot.NameStart", kSlotNameStart},
    {"NameSlot.NameEnd", kSlotNameEnd},
    {"NameSlot.Level", kSlotLevel},
    {"NameSlot.Path", kSlotPath},
    {"NameSlot.RemovedBy", kSlotRemovedBy},
    {"NameSlot.RowPart", kSlotRowPart},
    {"NameSlot.Words", kSlotWords},
    {"RowPart.None", kNoRowPart},
    {"RowPart.Span", kRowPartSpan},
    {"MemberLevel.Properties", kPropertiesLevel},
    {"MemberLevel.Set", kSetLevel},
    {"MemberLevel.SetOnce", kSetOnceLevel},
    {"MemberPlace.RowCount", kPlaceRowCount},
    {"MemberPlace.ChangesEnd", kPlaceChangesEnd},
    {"MemberPlace.FirstRow", kPlaceFirstRow},
    {"MemberPlace.RowWords", kPlaceRowWords},
    {"PlaceRow.Row", kPlaceRow},
    {"PlaceRow.Removals", kPlaceRemovals},
    {"PlaceRow.Schema", kPlaceSchema},
    {"PlaceRow.AlsoListed", kAlsoListed},
    {"SchemaWord.Required", kSchemaRequired},
    {"SchemaWord.Other", kSchemaOther},
    {"SchemaWord.SlotBits", kSchemaSlotBits},
    {"SchemaWord.Words", kSchemaWords},
    {"OtherProperties.Any", kAnyOther},
    {"OtherProperties.None", kNoOther},
    {"PropertySlot.Path", kPropertyPath},
    {"PropertySlot.Required", kPropertyRequired},
    {"PropertySlot.Value", kPropertyValue},
    {"PropertySlot.Words", kPropertyWords},
    {"ValueWord.Types", kValueTypes},
    {"ValueWord.Number", kValueNumber},
    {"ValueWord.Text", kValueText},
    {"ValueWord.Words", kValueWords},
    {"NumberWord.Integer", kNumberInteger},
    {"NumberWord.Minimum", kNumberMinimum},
    {"NumberWord.Maximum", kNumberMaximum},
    {"NumberWord.Above", kNumberAbove},
    {"NumberWord.Below", kNumberBelow},
    {"NumberWord.Values", kNumberValues},
    {"NumberWord.Words", kNumberWords},
    {"TextWord.CharactersMin", kTextCharactersMin},
    {"TextWord.CharactersMax", kTextCharactersMax},
    {"TextWord.BytesMax", kTextBytesMax},
    {"TextWord.Spans", kTextSpans},
    {"TextWord.Steps", kTextSteps},
    {"TextWord.HasEnd", kTextHasEnd},
    {"TextWord.Words", kTextWords},
    {"TextSpan.Start", kSpanStart},
    {"TextSpan.Bytes", kSpanBytes},
    {"TextSpan.Words", kSpanWords},
    {"PatternStep.Text", kStepText},
    {"PatternStep.Set", kStepSet},
    {"PatternStep.Min", kStepMin},
    {"PatternStep.Max", kStepMax},
    {"PatternStep.Others", kStepOthers},
    {"PatternStep.Words", kStepWords},
    {"OtherCharacters.None", kNoOthers},
    {"OtherCharacters.All", kAllOthers},
    {"OtherCharacters.Some", kSomeOthers},
    {"CheckPadding.Words", kCheckPadding},
    {"KnownName.Bytes", kNameBytes},
    {"KnownName.Value", kNameValue},
    {"KnownName.Text", kNameText},
    {"KnownName.Words", kNameWords},
    {"NamedRows.First", kNamedFirst},
    {"NamedRows.Count", kNamedCount},
    {"NamedRows.Results", kNamedResults},
    {"NameResult.Unknown", kUnknownName},
    {"NameResult.Unread", kUnreadName},
    {"Change.Row", kChangeRow},
    {"Change.Edits", kChangeEdits},
    {"Change.FieldTypes", kChangeFieldTypes},
    {"Change.PropertyTypes", kChangePropertyTypes},
    {"Change.NeedsScan", kChangeNeedsScan},
    {"Change.Rules", kChangeRules},
    {"Change.Words", kChangeWords},
    {"Edit.Start", kEditStart},
    {"Edit.End", kEditEnd},
    {"Edit.TextStart", kEditTextStart},
    {"Edit.TextEnd", kEditTextEnd},
    {"Edit.Words", kEditWords},
    {"EditText.Hashed", kHashedText},
    {"EditText.HashBytes", kHashTextBytes},
    {"NameHash.Short", hash_of(kSetLevel, "id")},
    {"NameHash.Long", hash_of(kSetOnceLevel, "$current_url")},
    {"NameHash.Bit", filter_bit_of("\"$current_url\"")},
    {"SlotSample.Small", property_slot(5, 3)},
    {"SlotSample.Large", property_slot(40'000, 10)},
};

}  // namespace

bool set_layout(napi_env env, napi_value exports) {
  napi_value layout = nullptr;
  if (napi_create_object(env, &layout) != napi_ok) return false;
  for (const LayoutNumber& number : kLayout) {
    napi_value value = nullptr;
    if (napi_create_uint32(env, static_cast<uint32_t>(number.value), &value) != napi_ok)
      return false;
    if (napi_set_named_property(env, layout, number.name, value) != napi_ok) return false;
  }
  return napi_set_named_property(env, exports, "layout", layout) == napi_ok;
}

}  // namespace penstock
