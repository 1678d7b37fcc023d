import type { Schemas } from '../../../api/client.ts'
import { Chart } from '../../../charts/chart.tsx'
import type { ChartData } from '../../../charts/series.ts'
import { variantOf } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import { EmptyWidget } from './empty.tsx'
import { useHistory } from './use-history.ts'

type Point = Schemas['HistoryPoint']

const named = (names: readonly string[]): ChartData['series'] => names.map((name) => ({ name, tone: variantOf(name) }))

/** In stacking order, from the bottom. */
const clusterStatuses = ['Healthy', 'Pending', 'Degraded', 'Offline'] as const
const jobEnds = ['Completed', 'Cancelled', 'Failed'] as const
const clusterSeries = named(clusterStatuses)
const jobSeries = named(jobEnds)

const clusterCounts = ({ clusters }: Point) => clusters && clusterStatuses.map((status) => clusters.byStatus[status])
const jobCounts = ({ jobs }: Point) => jobs && [jobs.completed, jobs.cancelled, jobs.failed]

const pointsOf = (points: readonly Point[], valuesOf: (point: Point) => number[] | undefined): ChartData['points'] =>
  points.map((point) => ({ atMs: Date.parse(point.at), values: valuesOf(point) }))

export const ClustersOverTime = () => (
  <Loaded query={useHistory()} what="the history">
    {({ stepMinutes, points }) => (
      <Chart
        label="Clusters over time"
        look="areas"
        series={clusterSeries}
        points={pointsOf(points, clusterCounts)}
        stepMinutes={stepMinutes}
        empty={<EmptyWidget text="No clusters in this period." to={{ to: '/clusters' }} label="Go to clusters" />}
      />
    )}
  </Loaded>
)

export const JobsOverTime = () => (
  <Loaded query={useHistory()} what="the history">
    {({ stepMinutes, points }) => (
      <Chart
        label="Jobs over time"
        look="bars"
        series={jobSeries}
        points={pointsOf(points, jobCounts)}
        stepMinutes={stepMinutes}
        empty={<EmptyWidget text="No finished jobs in this period." to={{ to: '/jobs' }} label="Go to jobs" />}
      />
    )}
  </Loaded>
)
