import { validationFailed } from '../error.ts'
import { sha256 } from '../id.ts'

/**
 * Pages by number or by cursor. A cursor names the position after which the next page starts. Without another order,
 * lists are sorted by an immutable position, newest first, so that paging by cursor returns each item once, even if the
 * list changes.
 */

export interface PageQuery {
  page: number
  pageSize: number
  cursor?: string | undefined
}

export interface Page {
  page: number
  pageSize: number
  /** Only items with a lower position; `page` is then 1. */
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
  const before = cursor === undefined ? {} : { before: positionOf(cursor, scope) }
  if (cursor !== undefined && page !== 1) throw rejected('/page', 'must be absent with cursor')
  const { next, ...result } = await read({ page, pageSize, ...before })
  return { ...result, page, pageSize, ...(next !== undefined && { nextCursor: cursorOf(next, scope) }) }
}

/** The prefix `1` must change when the meaning of positions changes. */
function cursorOf(position: string, scope: readonly unknown[]): string {
  const mark = sha256(JSON.stringify([scope, position])).slice(0, 16)
  return Buffer.from(`1.${mark}.${position}`).toString('base64url')
}

const cursorText = /^1\.[0-9a-f]{16}\.([a-z0-9_]{1,420})$/

function positionOf(cursor: string, scope: readonly unknown[]): string {
  const [, position] = cursorText.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (position !== undefined && cursorOf(position, scope) === cursor) return position
  throw rejected('/cursor', 'is not a cursor of this list with these filters. Start again without cursor')
}

const rejected = (path: string, message: string) =>
  validationFailed([{ in: 'query', path, code: 'invalid_cursor', message }])

/** The upper bound of all positions lower than `position`. Positions of a list have equal lengths. */
export const below = (position: string): string =>
  `${position.slice(0, -1)}${String.fromCharCode(position.charCodeAt(position.length - 1) - 1)}~`

/** Takes the items of a page. One more was read, to see whether others follow. */
export function firstOf<Item>(items: readonly Item[], pageSize: number, position: (item: Item) => string) {
  const last = items[pageSize - 1]
  return {
    items: items.slice(0, pageSize),
    next: last !== undefined && items.length > pageSize ? position(last) : undefined,
  }
}

/** The order of a list that is not sorted by its position. A position then contains the values that are compared. */
export interface Order<Item> {
  position: (item: Item) => string
  /** Whether the item comes after a position. */
  isAfter: (item: Item, position: string) => boolean
}

/** A page of a list that was read completely, newest first or in another `order`. */
export function pageOfItems<Item>(
  all: readonly Item[],
  page: Page,
  position: (item: Item) => string,
  order: Order<Item> = { position, isAfter: (item, before) => position(item) < before },
) {
  const { before } = page
  const rest =
    before === undefined
      ? all.slice((page.page - 1) * page.pageSize)
      : all.filter((item) => order.isAfter(item, before))
  return { ...firstOf(rest, page.pageSize, order.position), totalCount: all.length }
}
