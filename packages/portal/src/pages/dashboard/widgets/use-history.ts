import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { api, unwrap } from '../../../api/client.ts'
import { pollEvery } from '../../../api/query.ts'

/** Values of the `range` parameter. */
export const rangeList = ['day', 'week', 'month'] as const
export type Range = (typeof rangeList)[number]

const hoursOf: Record<Range, number> = { day: 24, week: 7 * 24, month: 30 * 24 }

const pollSeconds = 60

/** The range of all charts, part of the address. */
export const useRange = (): Range => useSearch({ from: '/signed-in/dashboard' }).range ?? 'day'

/** One query for all charts. */
export function useHistory() {
  const hours = hoursOf[useRange()]
  return useQuery({
    queryKey: ['history', hours],
    queryFn: () => unwrap(api.GET('/api/v1/portal/history', { params: { query: { hours } } })),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
    refetchInterval: pollEvery(pollSeconds),
  })
}
