#include "found_members_oracle.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "change_items.h"
#include "check.h"
#include "edited_item.h"
#include "find_members.h"
#include "json_text.h"
#include "plan_rows_oracle.h"
#include "random.h"
#include "schema_checks.h"

namespace fuzz {
namespace {

using Words = std::vector<uint32_t>;

constexpr size_t kSlots = 32;
static_assert(kSlots > std::size(kPaths));
constexpr uint32_t kRows = 4;
/** More than the changes of any short text have. */
constexpr size_t kWordsMax = size_t{1} << 20;
constexpr uint32_t kAllFlags =
    penstock::kListsAll | penstock::kHasPersonPaths | penstock::kListsContainers;

constexpr uint32_t kJudgedPath = 4;
constexpr uint32_t kSlotBits = 1;
constexpr uint32_t kSchemaEnd = penstock::kSchemaWords + 2 * penstock::kPropertyWords;
/** Names only the judged path, requires it, and accepts others. */
constexpr uint32_t kOpenSchema = 1;
/** Names only the judged path, and accepts no others. */
constexpr uint32_t kClosedSchema = kOpenSchema + kSchemaEnd;

/** Schemas of which null and strings without escapes are sure. */
struct Checks {
  Words words;

  Checks() {
    const uint32_t value = kClosedSchema + kSchemaEnd;
    const uint32_t text = value + penstock::kValueWords;
    words.resize(text + penstock::kTextWords + penstock::kCheckPadding);
    for (const uint32_t schema : {kOpenSchema, kClosedSchema}) {
      const bool is_open = schema == kOpenSchema;
      words[schema + penstock::kSchemaRequired] = is_open ? 1 : 0;
      words[schema + penstock::kSchemaOther] = is_open ? penstock::kAnyOther : penstock::kNoOther;
      words[schema + penstock::kSchemaSlotBits] = kSlotBits;
      uint32_t* const slot =
          &words[schema + penstock::kSchemaWords +
                 penstock::property_slot(kJudgedPath, kSlotBits) * penstock::kPropertyWords];
      slot[penstock::kPropertyPath] = kJudgedPath;
      slot[penstock::kPropertyRequired] = is_open ? 1 : 0;
      slot[penstock::kPropertyValue] = value;
    }
    words[value + penstock::kValueTypes] = 1u << penstock::kNull;
    words[value + penstock::kValueText] = text;
    words[text + penstock::kTextCharactersMax] = UINT32_MAX;
    words[text + penstock::kTextBytesMax] = UINT32_MAX;
  }
};

/** The names and edits of kPaths. The memory has exactly their size. */
struct Names {
  /** The texts of the rules, which are those of the changes. */
  std::vector<uint8_t> texts;
  Words slots = Words(kSlots * penstock::kSlotWords);
  Words sets;
  Words checks = Checks().words;
  uint32_t flags = 0;
  uint64_t filter = 0;

  Names() {
    for (uint32_t index = 0; index < std::size(kPaths); index++) add(kPaths[index], index + 1);
    uint32_t set = 0;
    for (const Path& path : kPaths)
      if (path.edit == penstock::kSetMember) add_set(path, set++);
  }

  penstock::MemberNames given() const {
    return {texts.data(), texts.size(), slots.data(), kSlots,        flags,
            filter,       sets.data(),  set_count(),  checks.data(), checks.size()};
  }

 private:
  size_t set_count() const { return sets.size() / penstock::kSetWords; }

  uint32_t append(std::string_view bytes) {
    texts.insert(texts.end(), bytes.begin(), bytes.end());
    return static_cast<uint32_t>(texts.size());
  }

  void add(const Path& path, uint32_t number) {
    const std::string quoted = '"' + std::string(path.name) + '"';
    const auto* const name = reinterpret_cast<const uint8_t*>(quoted.data()) + 1;
    filter |= penstock::member_bit(name, path.name.size());
    uint32_t* const words = slot_for(path);
    words[penstock::kSlotNameStart] = static_cast<uint32_t>(texts.size());
    words[penstock::kSlotNameEnd] = append(path.name);
    words[penstock::kSlotPath] = number;
    words[penstock::kSlotEditedBy] = path.rules;
    words[penstock::kSlotEdit] = path.edit;
    words[penstock::kSlotRowPart] = path.row_part;
  }

  /** Returns a free slot, or the one of the path. */
  uint32_t* slot_for(const Path& path) {
    const auto* const name = reinterpret_cast<const uint8_t*>(path.name.data());
    const uint32_t hash = penstock::member_hash(path.level, name, path.name.size());
    // A slot is free if its name ends at 0, so the first name must not be
    // empty.
    const auto is_other = [&](const uint32_t* words) {
      return words[penstock::kSlotNameEnd] != 0 &&
             (words[penstock::kSlotPath] == 0 || &kPaths[words[penstock::kSlotPath] - 1] != &path);
    };
    size_t slot = hash % kSlots;
    while (is_other(&slots[slot * penstock::kSlotWords])) slot = (slot + 1) % kSlots;
    uint32_t* const words = &slots[slot * penstock::kSlotWords];
    words[penstock::kSlotHash] = hash;
    words[penstock::kSlotLevel] = path.level;
    return words;
  }

  void add_set(const Path& path, uint32_t set) {
    slot_for(path)[penstock::kSlotEdit] = penstock::kSetMember + set;
    const auto start = static_cast<uint32_t>(texts.size());
    const uint32_t value = append('"' + std::string(path.name) + "\":");
    const uint32_t end = append(path.value);
    append(",");
    const char first = path.value[0];
    const uint32_t type = first == '"'   ? penstock::kPlainString
                          : first == 'n' ? penstock::kNull
                                         : penstock::kNumber;
    sets.insert(sets.end(), {path.rules, start, value, end, type, path.row_part});
  }
};

struct Task {
  uint32_t kind;
  uint32_t argument;
};

/** Returns the words of the tasks of rows, from the first one on. */
Words words_of(const std::vector<Task>& tasks, uint32_t first = 0) {
  Words words(penstock::kTasksRows);
  words[penstock::kTasksFirst] = first;
  words[penstock::kTasksCount] = static_cast<uint32_t>(tasks.size());
  words[penstock::kTasksChangesEnd] = 1;
  for (const auto& [kind, argument] : tasks) words.insert(words.end(), {0, kind, argument, 0});
  return words;
}

const uint32_t* row_at(const Words& table, size_t row) {
  return &table[penstock::kHeaderWords + row * penstock::kRowWords];
}

struct Found {
  Words entries;
  /** The changes after their number. */
  Words changes;
  Words tasks;
};

/** Sets the words that the caller sets before each call. */
void begin_again(Words& tasks, const Words& first) {
  std::copy(&first[penstock::kTasksChangesEnd], &first[penstock::kTasksRows],
            &tasks[penstock::kTasksChangesEnd]);
}

/**
 * Finds without space, and then again with the tasks that the first call has left. Returns nothing
 * if the results differ, or if the text or the table is not that of the scan.
 */
Found find_any(penstock::EventScanner& scanner, const std::vector<uint8_t>& text,
               const Words& table, const Words& tasks, const Names& names) {
  const auto call = [&](Found& to) {
    const penstock::RowTasks rows{table.data(), tasks[penstock::kTasksFirst],
                                  tasks[penstock::kTasksCount], to.tasks.data()};
    const penstock::FoundList found{to.entries.data(), to.entries.size() / penstock::kFoundWords};
    return scanner.find_members(text.data(), rows, names.given(), found,
                                {to.changes.data(), to.changes.size()});
  };
  Found none{{}, {}, tasks};
  const size_t count = call(none);
  const size_t end = none.tasks[penstock::kTasksChangesEnd];
  if (count == penstock::kCannotFind || end > kWordsMax) return {};
  Found found{Words(count * penstock::kFoundWords), Words(end), none.tasks};
  begin_again(found.tasks, tasks);
  // A text that was changed is indexed again, so the numbers may be others.
  if (call(found) != count || found.tasks != none.tasks) return {};
  // One word less must not be exceeded.
  Found few{Words(count * penstock::kFoundWords), Words(end), tasks};
  if (end > 0) few.changes.pop_back();
  if (count > 0) few.entries.pop_back();
  call(few);
  return found;
}

Found find(penstock::EventScanner& scanner, const std::vector<uint8_t>& text, const Words& table,
           const Words& tasks, const Names& names) {
  Found found = find_any(scanner, text, table, tasks, names);
  check(!found.tasks.empty(), "a repeated call has the results of the first one");
  return found;
}

void check_entry(const std::vector<uint8_t>& text, const uint32_t* entry, uint32_t flags) {
  const uint32_t start = entry[penstock::kFoundStart];
  const uint32_t value = entry[penstock::kFoundValueStart];
  const uint32_t end = entry[penstock::kFoundValueEnd];
  const uint32_t path = entry[penstock::kFoundPath];
  check(value < end && end <= text.size(), "a value is in the text");
  if (path == penstock::kContainerPath) {
    check(text[value] == '{' && text[end - 1] == '}', "an object is whole");
    return;
  }
  check(entry[penstock::kFoundContainer] < start && start < value, "a member is in its object");
  check(text[start] == '"', "a member begins with its name");
  if (path == penstock::kUnnamedPath) {
    check((flags & penstock::kListsAll) != 0, "a member without a path is listed on request");
    return;
  }
  const std::string_view name = kPaths[path - 1].name;
  const std::string written = '"' + std::string(name) + '"';
  check(
      text.size() - start > written.size() &&
          std::string_view(reinterpret_cast<const char*>(&text[start]), written.size()) == written,
      "a path is that of the name");
}

/** Returns the entries of a row. */
Words entries_of(const Words& entries, uint32_t row) {
  Words of;
  for (size_t at = 0; at < entries.size(); at += penstock::kFoundWords)
    if (entries[at + penstock::kFoundRow] == row)
      of.insert(of.end(), &entries[at], &entries[at] + penstock::kFoundWords);
  return of;
}

Words list_all(penstock::EventScanner& scanner, const std::vector<uint8_t>& text,
               const Words& table, const Names& names) {
  const std::vector<Task> tasks(table[penstock::kRowCount], {penstock::kRowToList, 0});
  return find(scanner, text, table, words_of(tasks), names).entries;
}

/** Checks the result of a property of a row with a schema. */
void judge(uint32_t* entry, bool has_dollar, uint32_t schema, bool& passes, bool& has_required) {
  const uint32_t path = entry[penstock::kFoundPath];
  if (path == penstock::kContainerPath || (path != 0 && kPaths[path - 1].level != 0)) return;
  uint32_t& type = entry[penstock::kFoundType];
  bool is_sure = schema == kOpenSchema || has_dollar;
  if (path == kJudgedPath) {
    has_required = !has_required;
    is_sure =
        type == penstock::kNull || type == penstock::kPlainString || type == penstock::kEmptyString;
  }
  if (is_sure) type |= penstock::kFoundSure;
  else passes = false;
}

/** Checks that rows with a schema have the entries of rows without one, with
 * what is sure, or none.
 */
void check_schemas(penstock::EventScanner& scanner, const std::vector<uint8_t>& text,
                   const Words& table, Names& names) {
  const uint32_t row_count = table[penstock::kRowCount];
  const uint32_t flags = names.flags;
  for (const uint32_t schema : {kOpenSchema, kClosedSchema}) {
    // A schema that reads all properties lists them.
    names.flags = schema == kClosedSchema ? flags | penstock::kListsAll : flags;
    const Words plain = list_all(scanner, text, table, names);
    names.flags = flags;
    Words all;
    Words unsure;
    Words kinds;
    for (uint32_t row = 0; row < row_count; row++) {
      Words entries = entries_of(plain, row);
      const uint32_t properties =
          row_at(table, row)[penstock::kFieldTypes] >> 4 * penstock::kProperties & 15;
      bool passes = properties == penstock::kObject || properties == penstock::kAbsent ||
                    properties == penstock::kNull;
      // Repeated names are not plain, so that their number does not matter.
      bool has_required = schema == kClosedSchema;
      const bool may_be_missing = has_required;
      for (size_t at = 0; at < entries.size(); at += penstock::kFoundWords)
        judge(&entries[at], text[entries[at + penstock::kFoundStart] + 1] == '$', schema, passes,
              has_required);
      passes = passes && (may_be_missing || has_required);
      const Words result{
          row, penstock::kSchemaPath, 0, 0, 0, 0, 0, passes ? uint32_t{penstock::kFoundSure} : 0};
      entries.insert(entries.begin(), result.begin(), result.end());
      all.insert(all.end(), entries.begin(), entries.end());
      if (!passes) unsure.insert(unsure.end(), entries.begin(), entries.end());
      kinds.push_back(passes ? penstock::kValidRow : penstock::kRowToList);
    }
    const auto found = [&](uint32_t kind) {
      const std::vector<Task> tasks(row_count, {kind, schema});
      return find(scanner, text, table, words_of(tasks), names);
    };
    check(found(penstock::kRowToList).entries == all,
          "members are judged by the schema of their row");
    const Found if_any = found(penstock::kRowToListIfAny);
    check(if_any.entries == unsure, "rows whose members pass for sure have no entry");
    for (uint32_t row = 0; row < row_count; row++)
      check(if_any.tasks[penstock::kTasksRows + row * penstock::kTaskWords + penstock::kTaskKind] ==
                kinds[row],
            "a row with a schema is valid, or has entries");
  }
}

const uint32_t* extra_at(const Words& table, size_t row) {
  return &table[penstock::kHeaderWords + kRows * penstock::kRowWords + row * penstock::kExtraWords];
}

/** Checks a changed item and its row. */
void check_changed(const std::vector<uint8_t>& text, const uint32_t* change, const Words& sent,
                   const Words& target, uint32_t index, const EditedItem& expected) {
  static penstock::EventScanner scanner;
  const uint32_t* const moved = row_at(target, index);
  std::vector<uint8_t> changed(text.begin() + moved[penstock::kItemStart] - 1,
                               text.begin() + moved[penstock::kItemEnd] + 1);
  Words table(sent.size());
  check(scanner.scan(changed.data(), changed.size(), table.data(), kRows) ==
            penstock::ScanStatus::kOk,
        "an edited event is JSON");
  const uint32_t* const row = row_at(table, 0);
  check(
      EditedItem(Text(changed.data(), changed.size()), row, 0, penstock::kHasPersonPaths).text() ==
          expected.text(),
      "an edited event has the members that the rules leave");
  const uint32_t* const before = row_at(sent, change[penstock::kChangeRow]);
  // The row of a changed item is that of the sent item, so it has the flags of
  // that item.
  const bool was_plain = before[penstock::kMoreTypes] >> penstock::kItemFlagsShift == 0;
  if (change[penstock::kChangeNeedsScan] != 0 || !was_plain) return;
  const uint32_t shift = moved[penstock::kItemStart] - 1;
  for (uint32_t word = 0; word < penstock::kRowWords; word++) {
    const bool is_offset = word < penstock::kFieldTypes && row[word] != 0;
    check(moved[word] == row[word] + (is_offset ? shift : 0),
          "the row of an edited event is that of a scan");
  }
  if ((row[penstock::kMoreTypes] >> penstock::kHasExtraShift & 1) == 0) return;
  const uint32_t* const extra = extra_at(table, 0);
  for (uint32_t word = 0; word < penstock::kExtraWords; word++) {
    const bool is_offset = word < penstock::kExtraTypes && extra[word] != 0;
    check(extra_at(target, index)[word] == extra[word] + (is_offset ? shift : 0),
          "the extra of an edited event is that of a scan");
  }
}

/** Checks the texts of the changes. `edited` has the items of the rows, by the
 * number of their change. */
void check_changes(const std::vector<uint8_t>& text, Words table, const Found& found,
                   const Names& names, const std::vector<EditedItem>& edited) {
  Words changes = found.changes;
  const uint32_t count = found.tasks[penstock::kTasksChanges];
  changes[0] = count;
  std::vector<uint8_t> target(found.tasks[penstock::kTasksChangedBytes] + 2 * size_t{count});
  Words target_table(table.size());
  const penstock::ItemChanges given{changes.data(),
                                    changes.size(),
                                    {names.texts.data(), names.texts.size()},
                                    {write_letters, nullptr}};
  const size_t end =
      penstock::change_items(given, {text.data(), text.size()}, {table.data(), kRows},
                             target.data(), target.size(), {target_table.data(), kRows});
  check(end != penstock::kBadChange, "the edits are in the text, and their bytes are counted");
  size_t at = 1;
  for (uint32_t index = 0; index < count; index++) {
    const uint32_t* const change = &found.changes[at];
    check_changed(target, change, table, target_table, index, edited[index]);
    at += penstock::kChangeWords + size_t{change[penstock::kChangeEdits]} * penstock::kEditWords;
  }
  check(at == found.changes.size(), "the changes end where their list ends");
}

/** Returns whether any entry is not that of an object. */
bool has_member(const Words& entries) {
  for (size_t at = 0; at < entries.size(); at += penstock::kFoundWords)
    if (entries[at + penstock::kFoundPath] != penstock::kContainerPath) return true;
  return false;
}

/** Checks the entries, changes and results of rows with arbitrary tasks. */
void check_tasks(penstock::EventScanner& scanner, const std::vector<uint8_t>& text,
                 const Words& table, const Names& names, Random& random) {
  constexpr uint32_t kKinds[] = {penstock::kRowToEdit,  penstock::kRowToEdit,
                                 penstock::kRowToList,  penstock::kRowToListIfAny,
                                 penstock::kRowToApply, penstock::kStoredRow};
  const Text of(text.data(), text.size());
  const Words listed = list_all(scanner, text, table, names);
  const uint32_t first = random.below(table[penstock::kRowCount]);
  std::vector<Task> tasks(table[penstock::kRowCount] - first);
  for (Task& task : tasks) {
    task.kind = kKinds[random.below(std::size(kKinds))];
    if (task.kind == penstock::kRowToEdit)
      task.argument =
          random.below(1u << kRules) | (random.below(2) == 0 ? kOneMoreRule | kOtherMoreRule : 0);
  }
  Words expected = words_of(tasks, first);
  const Found found = find(scanner, text, table, expected, names);
  Words entries;
  std::vector<EditedItem> edited;
  for (uint32_t index = 0; index < tasks.size(); index++) {
    const uint32_t row = first + index;
    uint32_t* const task = &expected[penstock::kTasksRows + size_t{index} * penstock::kTaskWords];
    uint32_t& kind = task[penstock::kTaskKind];
    if (kind == penstock::kRowToEdit) {
      const EditedItem item(of, row_at(table, row), tasks[index].argument, names.flags);
      if (item.is_unsure()) {
        kind = penstock::kRowToList;
        task[penstock::kTaskArgument] = 0;
      } else if (item.applied() == 0) {
        kind = penstock::kStoredRow;
      } else {
        kind = penstock::kEditedRow;
        task[penstock::kTaskResult] = ++expected[penstock::kTasksChanges];
        for (uint32_t rule = 0; rule < 32; rule++)
          expected[penstock::kTasksRuleChanges + rule] += item.applied() >> rule & 1;
        edited.push_back(item);
      }
    }
    const Words of_row = entries_of(listed, row);
    const bool lists = kind == penstock::kRowToList || kind == penstock::kRowToListIfAny;
    if (lists) {
      const bool stays = kind == penstock::kRowToListIfAny && !has_member(of_row);
      if (!stays) entries.insert(entries.end(), of_row.begin(), of_row.end());
      kind = stays ? penstock::kStoredRow : penstock::kRowToList;
    }
  }
  check(found.entries == entries, "only members of rows to list have entries");
  for (const uint32_t word : {penstock::kTasksChangesEnd, penstock::kTasksChangedBytes})
    expected[word] = found.tasks[word];
  check(found.tasks == expected, "the results of rows and the counts are those of the tasks");
  check_changes(text, table, found, names, edited);
}

/** Changes some words. Most of the new values are offsets that are nearly
 * right. */
void change_words(Words& words, size_t first, Random& random) {
  for (uint32_t changed = 0; changed < 4; changed++) {
    const uint32_t kind = random.below(3);
    words[first + random.below(words.size() - first)] =
        kind == 0   ? random.below(SIZE_MAX)
        : kind == 1 ? random.below(64)
                    : static_cast<uint32_t>(words.size()) - random.below(16);
  }
}

/** Moves the value that is set. */
void move_value(Words& sets, Random& random) {
  uint32_t* const set =
      &sets[random.below(sets.size() / penstock::kSetWords) * size_t{penstock::kSetWords}];
  const uint32_t distance = random.below(2) == 0 ? random.below(SIZE_MAX) : random.below(64);
  set[penstock::kSetValueStart] += distance;
  set[penstock::kSetTextEnd] += distance;
}

/**
 * Names, members to set, checks and tasks that no writer produces must not lead
 * out of their words, and must come to an end.
 */
void check_wrong_words(penstock::EventScanner& scanner, const std::vector<uint8_t>& text,
                       const Words& table, const Names& names, Random& random) {
  const uint32_t row_count = table[penstock::kRowCount];
  for (uint32_t round = 0; round < 24; round++) {
    Names wrong = names;
    std::vector<Task> tasks(row_count, {penstock::kRowToEdit, random.below(SIZE_MAX)});
    const uint32_t schema = random.below(8) < 6 ? kOpenSchema : random.below(64);
    if (round % 4 == 0) tasks.assign(row_count, {penstock::kRowToList, schema});
    Words words = words_of(tasks);
    switch (round % 4) {
      case 0:
        change_words(wrong.checks, 0, random);
        if (round % 8 == 0) wrong.checks.resize(random.below(wrong.checks.size()));
        break;
      case 1: change_words(wrong.slots, 0, random); break;
      case 2:
        move_value(wrong.sets, random);
        if (round % 8 == 2) break;
        change_words(wrong.sets, 0, random);
        wrong.sets.resize(random.below(wrong.sets.size() / penstock::kSetWords + 1) *
                          penstock::kSetWords);
        break;
      default: change_words(words, penstock::kTasksItemBytesMax, random);
    }
    const Found found = find_any(scanner, text, table, words, wrong);
    if (found.changes.empty()) continue;
    Words changes = found.changes;
    changes[0] = found.tasks[penstock::kTasksChanges];
    Words sent = table;
    Words target_table(table.size());
    std::vector<uint8_t> target(text.size());
    penstock::change_items({changes.data(),
                            changes.size(),
                            {wrong.texts.data(), wrong.texts.size()},
                            {write_letters, nullptr}},
                           {text.data(), text.size()}, {sent.data(), kRows}, target.data(),
                           target.size(), {target_table.data(), kRows});
  }
}

}  // namespace

void check_found_members(penstock::EventScanner& scanner, const uint8_t* bytes, size_t length) {
  std::vector<uint8_t> text(bytes, bytes + length);
  Words table(penstock::kHeaderWords +
              kRows * (size_t{penstock::kRowWords} + penstock::kExtraWords));
  if (scanner.scan(text.data(), text.size(), table.data(), kRows) != penstock::ScanStatus::kOk)
    return;
  const uint32_t row_count = table[penstock::kRowCount];
  if (row_count == 0) return;
  Names names;
  Random random(text);
  for (const uint32_t flags : {uint32_t{penstock::kHasPersonPaths}, kAllFlags}) {
    names.flags = flags;
    const Words listed = list_all(scanner, text, table, names);
    for (size_t at = 0; at < listed.size(); at += penstock::kFoundWords)
      check_entry(text, &listed[at], flags);
    check_schemas(scanner, text, table, names);
    for (int time = 0; time < 3; time++) check_tasks(scanner, text, table, names, random);
  }
  for (int time = 0; time < 4; time++) check_names(text, table, row_count, random);
  check_wrong_words(scanner, text, table, names, random);
  const auto arbitrary_tasks = [&random] {
    std::vector<Task> tasks(kRows);
    for (Task& task : tasks)
      task = {random.below(2) == 0 ? penstock::kRowToEdit : penstock::kRowToList, random.below(64)};
    return words_of(tasks);
  };
  // Tables that no scan produces must not lead out of the text.
  for (uint32_t round = 0; round < 16; round++) {
    uint32_t& word =
        table[penstock::kHeaderWords + random.below(table.size() - penstock::kHeaderWords)];
    const uint32_t before = word;
    word = round % 2 == 0 ? random.below(SIZE_MAX) : before + random.below(5) - 2;
    find_any(scanner, text, table, arbitrary_tasks(), names);
    check_names(text, table, kRows, random);
    word = before;
  }
  // A text that was changed after its scan must not lead out of it either.
  for (uint32_t round = 0; round < 16; round++) {
    text[random.below(text.size())] = static_cast<uint8_t>("{}[],:\"x 1"[random.below(10)]);
    find_any(scanner, text, table, arbitrary_tasks(), names);
  }
}

}  // namespace fuzz
