import { type InfiniteData, infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query'
import { summaryQuery } from '../../api/account.ts'
import { api, unwrap, type Schemas, expectNoBody } from '../../api/client.ts'
import { queries } from '../../api/query.ts'
import { showErrorToast } from '../../ui/toast.tsx'

export type Notification = Schemas['Notification']

export interface Filter {
  unreadOnly: boolean
  type?: Notification['type'] | undefined
  severity?: Notification['severity'] | undefined
}

const pageSize = 30
const listKey = ['notifications', 'list']

const pageOf = (page: number, { unreadOnly, type, severity }: Filter) => {
  const query = { unreadOnly, ...(type && { type }), ...(severity && { severity }), page, pageSize }
  return unwrap(api.GET('/api/v1/notifications', { params: { query } }))
}

const listQuery = (filter: Filter) =>
  infiniteQueryOptions({
    queryKey: [...listKey, filter],
    initialPageParam: 1,
    queryFn: ({ pageParam }) => pageOf(pageParam, filter),
    getNextPageParam: ({ page, totalCount }) => (page * pageSize < totalCount ? page + 1 : undefined),
  })

type Pages = InfiniteData<Awaited<ReturnType<typeof pageOf>>, number>

/** Reads the notifications that match the filter, newest first. The summary poll triggers a refetch. */
export function useNotifications(filter: Filter) {
  return useInfiniteQuery({ ...listQuery(filter), select: mergePages })
}

// New notifications move others to the next page, so a notification can be on two pages.
function mergePages({ pages }: Pages): { items: Notification[]; totalCount: number } {
  const byId = new Map(pages.flatMap(({ items }) => items).map((item) => [item.id, item]))
  return { items: [...byId.values()], totalCount: pages[0]?.totalCount ?? 0 }
}

/** Marks notifications as read. Lists and the unread count change immediately and are restored if the request fails. */
export async function markRead(selection: 'all' | readonly string[]): Promise<void> {
  await Promise.all([queries.cancelQueries({ queryKey: listKey }), queries.cancelQueries(summaryQuery)])
  const lists = queries.getQueriesData<Pages>({ queryKey: listKey })
  const summary = queries.getQueryData(summaryQuery.queryKey)
  applyRead(selection, summary?.unreadCount ?? 0)
  try {
    await expectNoBody(
      api.PATCH('/api/v1/notifications', {
        body: selection === 'all' ? { markAllRead: true } : { ids: [...selection] },
      }),
    )
  } catch (error) {
    for (const [key, data] of lists) queries.setQueryData(key, data)
    if (summary) queries.setQueryData(summaryQuery.queryKey, summary)
    showErrorToast('Failed to mark as read', error)
  }
  await Promise.all([
    queries.invalidateQueries({ queryKey: ['notifications'] }),
    queries.invalidateQueries(summaryQuery),
  ])
}

function applyRead(selection: 'all' | readonly string[], unreadCount: number): void {
  const isAffected = ({ id }: Notification) => selection === 'all' || selection.includes(id)
  queries.setQueriesData<Pages>(
    { queryKey: listKey },
    (before) =>
      before && { ...before, pages: before.pages.map((page) => ({ ...page, items: page.items.map(asRead) })) },
  )
  const remainingCount = selection === 'all' ? 0 : Math.max(0, unreadCount - selection.length)
  queries.setQueryData(summaryQuery.queryKey, (before) => before && { ...before, unreadCount: remainingCount })

  function asRead(item: Notification): Notification {
    return isAffected(item) ? { ...item, read: true } : item
  }
}
