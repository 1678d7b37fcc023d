import { queryOptions, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { api, unwrap, type Schemas } from './client.ts'
import { ApiError } from './api-error.ts'
import { publicQuery, pollEvery, queries } from './query.ts'

/** What every page knows: the platform, the user, where one can go, and the numbers that change all the time. */

export const configurationQuery = queryOptions({
  queryKey: ['configuration'],
  queryFn: () => unwrap(api.GET('/api/v1/portal/configuration')),
  staleTime: Infinity,
  meta: publicQuery,
})

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: async () => {
    const me = await unwrap(api.GET('/api/v1/auth/me'))
    const before = queries.getQueryData<Schemas['UserProfile']>(['me'])
    // Somebody else has signed in, in another tab: nothing of what was seen here is theirs.
    if (before !== undefined && before.id !== me.id) location.reload()
    return me
  },
  staleTime: 60_000,
  retry: false,
})

/** The signed-in user. For pages behind the sign-in, which load it before they are shown. */
export const useMe = (): Schemas['UserProfile'] => useSuspenseQuery(meQuery).data

/** A permission, as the platform names it. */
export type Permission = Schemas['UserProfile']['permissions'][number]

/** Whether the user holds a permission: what is not allowed is not offered. The platform decides all the same. */
export const useHasPermission = (permission: Permission): boolean => useMe().permissions.includes(permission)

/** Seconds between two looks at the numbers: a module's entry is in the navigation within five seconds. */
const summarySeconds = 4

export const summaryQuery = queryOptions({
  queryKey: ['summary'],
  queryFn: async () => {
    const summary = await unwrap(api.GET('/api/v1/portal/summary'))
    const before = queries.getQueryData<Schemas['PortalSummary']>(['summary'])
    const shown = queries.getQueryData(navigationQuery.queryKey)?.tag
    if (shown !== undefined && !shown.includes(summary.navigationTag)) {
      void queries.invalidateQueries({ queryKey: navigationQuery.queryKey })
    }
    if (before !== undefined && before.unreadCount !== summary.unreadCount) {
      void queries.invalidateQueries({ queryKey: ['notifications'] })
    }
    return summary
  },
  refetchInterval: pollEvery(summarySeconds),
})

/** All numbers that are shown outside of lists. The one poll of the portal: use it, do not poll beside it. */
export const useSummary = () => useQuery(summaryQuery)

/** Whether the platform does not answer just now: the poll says so, before it gives up as well. */
export function useIsOffline(): boolean {
  const { error, failureReason } = useQuery({ ...summaryQuery, enabled: false })
  const failure = error ?? failureReason
  return failure instanceof ApiError && failure.isPassing
}

/** How many notifications are unread, as far as it is known. Whoever uses it hears of no other number. */
export const useUnreadCount = (): number =>
  useQuery({ ...summaryQuery, select: ({ unreadCount }) => unreadCount }).data ?? 0

/** Where one can go, and what tells this very navigation from others; absent where a proxy has taken it away. */
interface Navigation {
  items: Schemas['NavigationEntry'][]
  tag: string | undefined
}

export const navigationQuery = queryOptions({
  queryKey: ['navigation'],
  queryFn: async (): Promise<Navigation> => {
    const call = api.GET('/api/v1/portal/navigation')
    const { items } = await unwrap(call)
    const { response } = await call
    return { items, tag: response.headers.get('etag') ?? undefined }
  },
  staleTime: Infinity,
})
