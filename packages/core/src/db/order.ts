import { type Order } from './paging.ts'

/**
 * Sorts a list that was read completely by a value of its items. Numbers in values are compared by value: `edge-9` comes
 * before `edge-10`. Items without a value come last, and items with equal values are sorted newest first.
 */

interface Sortable {
  id: string
  value: string
}

interface SortOptions<Item> {
  /** `name` or, to reverse the order, `-name`. */
  sort: string
  /** Distinct, and descending from the newest to the oldest item. */
  idOf: (item: Item) => string
  valueOf: (item: Item) => string
}

export function sorted<Item>(
  items: readonly Item[],
  { sort, idOf, valueOf }: SortOptions<Item>,
): { items: Item[]; order: Order<Item> } {
  const direction = sort.startsWith('-') ? -1 : 1
  const compare = (one: Sortable, other: Sortable): number =>
    Number(one.value === '') - Number(other.value === '') ||
    direction * compareTexts(one.value, other.value) ||
    compareTexts(other.id, one.id)
  const sortable = (item: Item) => ({ item, id: idOf(item), value: naturalSortKey(valueOf(item)) })
  return {
    items: items
      .map(sortable)
      .toSorted(compare)
      .map(({ item }) => item),
    order: {
      position: (item) => `${idOf(item)}_${Buffer.from(valueOf(item)).toString('hex')}`,
      isAfter: (item, position) => compare(sortable(item), parsePosition(position)) > 0,
    },
  }
}

function parsePosition(position: string): Sortable {
  const end = position.lastIndexOf('_')
  return { id: position.slice(0, end), value: naturalSortKey(Buffer.from(position.slice(end + 1), 'hex').toString()) }
}

const compareTexts = (one: string, other: string): number => (one === other ? 0 : one < other ? -1 : 1)

const naturalSortKey = (text: string): string => text.replaceAll(/\d+/g, (digits) => digits.padStart(16, '0'))

/** A value in a position, cut to limit the length of cursors. */
export const sortText = (text: string): string => text.slice(0, 40).toWellFormed()
