import { validationFailedError } from '../error.ts'
import { sha256 } from '../id.ts'

/**
 * Reads lists in pages, by number or by cursor. A cursor names the position after which the next page starts. Without
 * another order, lists are sorted by an immutable position, newest first, so that paging by cursor returns each item
 * once, even if the list changes.
 */

export interface PageQuery {
  page: number
  pageSize: number
  cursor?: string | undefined
}

export interface Page {
  page: number
  pageSize: number
  /** The position of the cursor. Only items after this position are read, and `page` is 1. */
  before?: string
}

/** `next` is the position of the last item, if others follow. */
export interface Positioned {
  next?: string | undefined
}

/** `scope` identifies the list: its name, its owner and its filters. A cursor of another scope is rejected. */
export async function paged<Result extends Positioned>(
  scope: readonly unknown[],
  { page, pageSize, cursor }: PageQuery,
  read: (page: Page) => Promise<Result>,
): Promise<Omit<Result, 'next'> & { page: number; pageSize: number; nextCursor?: string }> {
  const before = cursor === undefined ? {} : { before: parseCursor(cursor, scope) }
  if (cursor !== undefined && page !== 1) throw invalidCursorError('/page', 'must be absent with cursor')
  const { next, ...result } = await read({ page, pageSize, ...before })
  return { ...result, page, pageSize, ...(next !== undefined && { nextCursor: cursorOf(next, scope) }) }
}

/** The prefix `1` must change when the meaning of positions changes. */
function cursorOf(position: string, scope: readonly unknown[]): string {
  const checksum = sha256(JSON.stringify([scope, position])).slice(0, 16)
  return Buffer.from(`1.${checksum}.${position}`).toString('base64url')
}

const cursorPattern = /^1\.[0-9a-f]{16}\.([a-z0-9_]{1,420})$/

function parseCursor(cursor: string, scope: readonly unknown[]): string {
  const [, position] = cursorPattern.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (position !== undefined && cursorOf(position, scope) === cursor) return position
  throw invalidCursorError('/cursor', 'is not a cursor of this list with these filters. Start again without cursor')
}

const invalidCursorError = (path: string, message: string) =>
  validationFailedError([{ in: 'query', path, code: 'invalid_cursor', message }])

/** Returns an upper bound of all positions lower than `position`. Positions of a list have equal lengths. */
export const upperBoundBelow = (position: string): string =>
  `${position.slice(0, -1)}${String.fromCharCode(position.charCodeAt(position.length - 1) - 1)}~`

/** Takes the items of a page. `items` has more items than the page if a next page exists. */
export function firstOf<Item>(items: readonly Item[], pageSize: number, positionOf: (item: Item) => string) {
  const lastItem = items[pageSize - 1]
  return {
    items: items.slice(0, pageSize),
    next: lastItem !== undefined && items.length > pageSize ? positionOf(lastItem) : undefined,
  }
}

/** The order of a list. A position contains the compared values. */
export interface Order<Item> {
  positionOf: (item: Item) => string
  isAfter: (item: Item, position: string) => boolean
}

/** Returns a page of a complete list, which is sorted newest first or in another `order`. */
export function pageOfItems<Item>(
  allItems: readonly Item[],
  page: Page,
  positionOf: (item: Item) => string,
  order: Order<Item> = { positionOf, isAfter: (item, before) => positionOf(item) < before },
) {
  const { before } = page
  const rest =
    before === undefined
      ? allItems.slice((page.page - 1) * page.pageSize)
      : allItems.filter((item) => order.isAfter(item, before))
  return { ...firstOf(rest, page.pageSize, order.positionOf), totalCount: allItems.length }
}
