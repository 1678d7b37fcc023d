import type { Order } from './paging.ts'

/**
 * Sorts a complete list by a text value of its items. Numbers of up to 16 digits in texts are compared numerically:
 * `edge-9` comes before `edge-10`. Items without a value come last. Items with equal values are sorted newest first.
 */

interface Sortable {
  id: string
  value: string
}

interface SortOptions<Item> {
  /** The name of a field; the prefix `-` reverses the order. */
  sort: string
  /** Distinct, and descending from the newest to the oldest item. */
  idOf: (item: Item) => string
  valueOf: (item: Item) => string
}

export function sortItems<Item>(
  items: readonly Item[],
  { sort, idOf, valueOf }: SortOptions<Item>,
): { items: Item[]; order: Order<Item> } {
  const direction = sort.startsWith('-') ? -1 : 1
  const compare = (one: Sortable, other: Sortable): number =>
    Number(one.value === '') - Number(other.value === '') ||
    direction * compareTexts(one.value, other.value) ||
    compareTexts(other.id, one.id)
  const toSortable = (item: Item) => ({ item, id: idOf(item), value: naturalSortKey(valueOf(item)) })
  return {
    items: items
      .map(toSortable)
      .toSorted(compare)
      .map(({ item }) => item),
    order: {
      positionOf: (item) => `${idOf(item)}_${Buffer.from(valueOf(item)).toString('hex')}`,
      isAfter: (item, position) => compare(toSortable(item), parsePosition(position)) > 0,
    },
  }
}

function parsePosition(position: string): Sortable {
  const end = position.lastIndexOf('_')
  return { id: position.slice(0, end), value: naturalSortKey(Buffer.from(position.slice(end + 1), 'hex').toString()) }
}

const compareTexts = (one: string, other: string): number => (one === other ? 0 : one < other ? -1 : 1)

const naturalSortKey = (text: string): string => text.replaceAll(/\d+/g, (digits) => digits.padStart(16, '0'))

/** Cuts a value to 40 characters, because cursors contain values. */
export const cutSortText = (text: string): string => text.slice(0, 40).toWellFormed()
