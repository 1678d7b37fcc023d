import { queryOptions, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { api, type Schemas, unwrap } from './client.ts'
import { ApiError } from './api-error.ts'
import { useIsLost } from './connection.ts'
import { removeOtherDrafts } from '../lib/draft-storage.ts'
import { pollEvery, publicQuery, queries } from './query.ts'
import { awaitSignIn } from './session.ts'

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
    removeOtherDrafts(before?.id ?? me.id)
    // If another user has signed in from another tab, the query tries to recover the session of the first user.
    if (before === undefined || before.id === me.id || !(await awaitSignIn())) return me
    return before
  },
  staleTime: 60_000,
  retry: false,
})

/** Returns the signed-in user. Routes that require a sign-in load the user before their pages render. */
export const useMe = (): Schemas['UserProfile'] => useSuspenseQuery(meQuery).data

export type Permission = Schemas['UserProfile']['permissions'][number]

/** Whether the user has a permission. It decides only what the portal shows; the platform enforces permissions. */
export const useHasPermission = (permission: Permission): boolean => useMe().permissions.includes(permission)

export const organisationSettingsQuery = queryOptions({
  queryKey: ['organisation-settings'],
  queryFn: () => unwrap(api.GET('/api/v1/organisation/settings')),
})

// A new module must appear in the navigation within five seconds.
const summaryIntervalSeconds = 4

export const summaryQuery = queryOptions({
  queryKey: ['summary'],
  queryFn: async () => {
    const summary = await unwrap(api.GET('/api/v1/portal/summary'))
    const before = queries.getQueryData<Schemas['PortalSummary']>(['summary'])
    const shownTag = queries.getQueryData(navigationQuery.queryKey)?.tag
    if (shownTag !== undefined && !shownTag.includes(summary.navigationTag)) {
      void queries.invalidateQueries({ queryKey: navigationQuery.queryKey })
    }
    if (before !== undefined && before.unreadCount !== summary.unreadCount) {
      void queries.invalidateQueries({ queryKey: ['notifications'] })
    }
    return summary
  },
  refetchInterval: pollEvery(summaryIntervalSeconds),
})

/** Reads the totals of the navigation and the dashboard, from one shared poll. */
export const useSummary = () => useQuery(summaryQuery)

/** Whether the platform does not respond, or the summary cannot be read because of a transient error. */
export function useIsOffline(): boolean {
  const isLost = useIsLost()
  const { error, failureReason } = useQuery({ ...summaryQuery, enabled: false })
  const failure = error ?? failureReason
  return isLost || (failure instanceof ApiError && failure.isTransient)
}

/**
 * Returns the number of unread notifications, or 0 until it is loaded. Components render again only if the number
 * changes.
 */
export const useUnreadCount = (): number =>
  useQuery({ ...summaryQuery, select: ({ unreadCount }) => unreadCount }).data ?? 0

// A proxy may remove the entity tag, so `tag` can be undefined.
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
