import { queryOptions, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { api, ask, type Schemas } from './client.ts'
import { every, queries } from './query.ts'

/** What every page knows: the platform, the user, where one can go, and the numbers that change all the time. */

export const configurationQuery = queryOptions({
  queryKey: ['configuration'],
  queryFn: () => ask(api.GET('/api/v1/portal/configuration')),
  staleTime: Infinity,
})

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => ask(api.GET('/api/v1/auth/me')),
  staleTime: 60_000,
  retry: false,
})

/** The signed-in user. For pages behind the sign-in, which load it before they are shown. */
export const useMe = (): Schemas['UserProfile'] => useSuspenseQuery(meQuery).data

/** A permission, as the platform names it. */
export type Permission = Schemas['UserProfile']['permissions'][number]

/** Whether the user holds a permission: what is not allowed is not offered. The platform decides all the same. */
export const useMay = (permission: Permission): boolean => useMe().permissions.includes(permission)

/** Seconds between two looks at the numbers: a module's entry is in the navigation within five seconds. */
const summarySeconds = 4

export const summaryQuery = queryOptions({
  queryKey: ['summary'],
  queryFn: async () => {
    const summary = await ask(api.GET('/api/v1/portal/summary'))
    const before = queries.getQueryData<Schemas['PortalSummary']>(['summary'])
    if (before !== undefined && before.navigationTag !== summary.navigationTag) {
      void queries.invalidateQueries({ queryKey: ['navigation'] })
    }
    if (before !== undefined && before.unreadCount !== summary.unreadCount) {
      void queries.invalidateQueries({ queryKey: ['notifications'] })
    }
    return summary
  },
  refetchInterval: every(summarySeconds),
})

/** All numbers that are shown outside of lists. The one poll of the portal: use it, do not poll beside it. */
export const useSummary = () => useQuery(summaryQuery)

export const navigationQuery = queryOptions({
  queryKey: ['navigation'],
  queryFn: () => ask(api.GET('/api/v1/portal/navigation')),
  staleTime: Infinity,
})
