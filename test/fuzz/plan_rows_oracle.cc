#include "plan_rows_oracle.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "check.h"
#include "plan_rows.h"
#include "random.h"

namespace fuzz {
namespace {

using Words = std::vector<uint32_t>;

constexpr size_t kSlots = 4;
constexpr uint32_t kItemBytesMax = 60;
constexpr uint32_t kKinds[] = {penstock::kSampledRow, penstock::kRowToEdit, penstock::kUnruledRow,
                               penstock::kSampledRow, penstock::kRowToListIfAny};

struct Span {
  size_t start;
  size_t length;
};

/** Returns the content of a string. */
Span text_of(const uint32_t* row, uint32_t field) {
  const size_t start = size_t{row[penstock::kFirstFieldStart + 2 * field]} + 1;
  return {start, row[penstock::kFirstFieldStart + 2 * field + 1] - 1 - start};
}

uint32_t kind_of(const std::vector<uint8_t>& text, const uint32_t* row, uint32_t kind,
                 uint32_t argument) {
  if (kind == penstock::kSampledRow) {
    if ((row[penstock::kFieldTypes] >> 4 * penstock::kDistinctId & 15) != penstock::kPlainString)
      return penstock::kRowToApply;
    const auto [start, length] = text_of(row, penstock::kDistinctId);
    // The offsets may be those of an arbitrary table.
    const bool is_simple =
        length != 0 && length <= 400 && start + length <= text.size() && text[start] > ' ';
    return is_simple && penstock::sample_hash(&text[start], length) <= argument
               ? penstock::kStoredRow
               : penstock::kRowToApply;
  }
  const bool is_large = row[penstock::kItemEnd] - row[penstock::kItemStart] > kItemBytesMax;
  return penstock::needs_members(kind) && is_large ? uint32_t{penstock::kTooLargeRow} : kind;
}

/** Returns an argument that is often the hash of the distinct id, or one less.
 */
uint32_t argument_of(const std::vector<uint8_t>& text, const uint32_t* row, Random& random) {
  const auto [start, length] = text_of(row, penstock::kDistinctId);
  const bool is_in_text = length <= text.size() && start <= text.size() - length;
  return is_in_text && random.below(4) != 0
             ? penstock::sample_hash(text.data() + start, length) - random.below(2)
             : random.below(SIZE_MAX);
}

struct Known {
  Words slots = Words(kSlots * penstock::kNameWords);
  Words tasks;

  Known(uint32_t first, uint32_t row_count)
      : tasks(penstock::kTasksRows + size_t{row_count} * penstock::kTaskWords) {
    tasks[penstock::kTasksFirst] = first;
    tasks[penstock::kTasksCount] = row_count;
    tasks[penstock::kTasksItemBytesMax] = kItemBytesMax;
  }

  void find(const std::vector<uint8_t>& text, const Words& table) {
    std::fill(tasks.begin() + penstock::kTasksRows, tasks.end(), UINT32_MAX);
    const penstock::RowTasks rows{table.data(), tasks[penstock::kTasksFirst],
                                  tasks[penstock::kTasksCount], tasks.data()};
    penstock::plan_rows(text.data(), text.size(), rows, {slots.data(), kSlots});
  }
};

}  // namespace

void check_names(const std::vector<uint8_t>& text, const Words& table, uint32_t row_count,
                 Random& random) {
  const uint32_t first = random.below(row_count);
  Known known(first, row_count - first);
  for (int time = 0; time < 2; time++) {
    known.find(text, table);
    uint32_t ruled = 0;
    uint32_t unknown = 0;
    uint32_t members = 0;
    for (uint32_t index = 0; index < row_count - first; index++) {
      const uint32_t* const row =
          &table[penstock::kHeaderWords + size_t{first + index} * penstock::kRowWords];
      const uint32_t* const task =
          &known.tasks[penstock::kTasksRows + size_t{index} * penstock::kTaskWords];
      const uint32_t kind = task[penstock::kTaskKind];
      ruled += kind != penstock::kUnruledRow;
      unknown += kind == penstock::kUnknownRow || kind == penstock::kUnreadRow;
      members += penstock::needs_members(kind);
      if (kind == penstock::kUnreadRow || kind == penstock::kRowToRewrite) continue;
      const auto [start, length] = text_of(row, penstock::kEvent);
      check(start + length <= text.size() && length <= penstock::kNameBytesMax,
            "a name that is found is in the text");
      const uint32_t slot = task[penstock::kTaskSlot];
      check(slot < kSlots, "a slot is in the table");
      uint32_t* const words = &known.slots[size_t{slot} * penstock::kNameWords];
      if (kind == penstock::kUnknownRow) {
        const uint32_t argument = argument_of(text, row, random);
        words[penstock::kNameBytes] = static_cast<uint32_t>(length);
        words[penstock::kNameKind] = kKinds[random.below(std::size(kKinds))];
        words[penstock::kNameArgument] = argument;
        std::memcpy(words + penstock::kNameText, &text[start], length);
      } else if (time == 1) {
        check(words[penstock::kNameBytes] == length &&
                  std::memcmp(words + penstock::kNameText, &text[start], length) == 0,
              "a slot is that of the name");
        check(task[penstock::kTaskArgument] == words[penstock::kNameArgument],
              "the argument is that of the name");
        check(
            kind == kind_of(text, row, words[penstock::kNameKind], words[penstock::kNameArgument]),
            "the task is that of the name, its sample and the size of the "
            "item");
      }
    }
    check(known.tasks[penstock::kTasksRuled] == ruled, "the ruled rows are counted");
    check(known.tasks[penstock::kTasksUnknown] == unknown, "the unknown names are counted");
    check(known.tasks[penstock::kTasksMembers] == members,
          "the rows whose members must be found are counted");
  }
  for (uint32_t& word : known.slots)
    if (random.below(2) == 0)
      word = random.below(2) == 0 ? random.below(80) : random.below(SIZE_MAX);
  known.find(text, table);
}

}  // namespace fuzz
