import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { api, type Schemas, unwrap } from '../../../api/client.ts'
import { pollEvery } from '../../../api/query.ts'
import { Chart } from '../../../charts/chart.tsx'
import type { ChartData } from '../../../charts/series.tsx'
import { variantOf } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { EmptyWidget, NoClusters } from './empty.tsx'

type Point = Schemas['HistoryPoint']

const seriesOf = (names: readonly string[]): ChartData['series'] =>
  names.map((name) => ({ name, variant: variantOf(name) }))

// Stacking order, from the bottom.
const clusterStatuses = ['Healthy', 'Pending', 'Degraded', 'Offline'] as const
const finalStatuses = ['Completed', 'Cancelled', 'Failed'] as const
const clusterSeries = seriesOf(clusterStatuses)
const jobSeries = seriesOf(finalStatuses)

const clusterCounts = ({ clusters }: Point) => clusters && clusterStatuses.map((status) => clusters.byStatus[status])
const jobCounts = ({ jobs }: Point) => jobs && [jobs.completed, jobs.cancelled, jobs.failed]

const pointsOf = (points: readonly Point[], valuesOf: (point: Point) => number[] | undefined): ChartData['points'] =>
  points.map((point) => ({ atMs: Date.parse(point.at), values: valuesOf(point) }))

export const ClustersOverTime = () => (
  <Loaded query={useHistory()} what="the history">
    {({ stepMinutes, points }) => (
      <Chart
        label="Clusters over time"
        shape="areas"
        series={clusterSeries}
        points={pointsOf(points, clusterCounts)}
        stepMinutes={stepMinutes}
        empty={<NoHistory />}
      />
    )}
  </Loaded>
)

function NoHistory() {
  if (useSummary().data?.clusters?.total === 0) return <NoClusters />
  return <EmptyWidget text="No clusters in this period." to={{ to: '/clusters' }} label="Go to clusters" />
}

export const JobsOverTime = () => (
  <Loaded query={useHistory()} what="the history">
    {({ stepMinutes, points }) => (
      <Chart
        label="Jobs over time"
        shape="bars"
        series={jobSeries}
        points={pointsOf(points, jobCounts)}
        stepMinutes={stepMinutes}
        empty={<EmptyWidget text="No finished jobs in this period." to={{ to: '/jobs' }} label="Go to jobs" />}
      />
    )}
  </Loaded>
)

export const rangeList = ['day', 'week', 'month'] as const
export type Range = (typeof rangeList)[number]

const hoursOf: Record<Range, number> = { day: 24, week: 7 * 24, month: 30 * 24 }

/** Returns the start of the range, for links to lists. */
export const startOf = (range: Range, nowMs: number): string =>
  new Date(nowMs - hoursOf[range] * 3_600_000).toISOString()

export const rangeNames: Record<Range, string> = { day: '24 hours', week: '7 days', month: '30 days' }

const pollSeconds = 60

export const useRange = (): Range => useSearch({ from: '/signed-in/dashboard' }).range ?? 'day'

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
