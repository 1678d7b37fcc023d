import type { ComponentType } from 'react'
import type { Permission } from '../../api/account.ts'
import type { MinSize, GridPosition } from './grid.ts'
import { Attention } from './widgets/attention.tsx'
import { ClusterNumbers } from './widgets/cluster-numbers.tsx'
import { ClustersOverTime, JobsOverTime } from './widgets/history-charts.tsx'
import { JobNumbers } from './widgets/job-numbers.tsx'
import { ModuleNumbers } from './widgets/module-numbers.tsx'
import { PlatformHealth } from './widgets/platform-health.tsx'
import { PlatformUpdate } from './widgets/platform-update.tsx'
import { RecentJobs } from './widgets/recent-jobs.tsx'
import { Unread } from './widgets/unread.tsx'

export interface Widget {
  /** Stored in layouts: never change it. */
  id: string
  title: string
  /** Users without this permission are not offered the widget. */
  needs?: Permission
  least: MinSize
  /** The default position. */
  place: Omit<GridPosition, 'widgetId'>
  Content: ComponentType
}

const small = { w: 3, h: 2 }
const list = { w: 3, h: 3 }
const chart = { w: 4, h: 4 }

/** All widgets, in their default positions. */
const widgets: readonly Widget[] = [
  {
    id: 'cluster-health',
    title: 'Cluster health',
    needs: 'clusters:read',
    least: small,
    place: { x: 0, y: 0, w: 4, h: 2 },
    Content: ClusterNumbers,
  },
  {
    id: 'job-numbers',
    title: 'Jobs',
    needs: 'jobs:read',
    least: small,
    place: { x: 4, y: 0, w: 5, h: 2 },
    Content: JobNumbers,
  },
  {
    id: 'platform-health',
    title: 'Platform health',
    least: small,
    place: { x: 9, y: 0, w: 3, h: 2 },
    Content: PlatformHealth,
  },
  {
    id: 'clusters-over-time',
    title: 'Clusters over time',
    needs: 'clusters:read',
    least: chart,
    place: { x: 0, y: 2, w: 6, h: 5 },
    Content: ClustersOverTime,
  },
  {
    id: 'jobs-over-time',
    title: 'Jobs over time',
    needs: 'jobs:read',
    least: chart,
    place: { x: 6, y: 2, w: 6, h: 5 },
    Content: JobsOverTime,
  },
  {
    id: 'recent-jobs',
    title: 'Recent jobs',
    needs: 'jobs:read',
    least: list,
    place: { x: 0, y: 7, w: 6, h: 5 },
    Content: RecentJobs,
  },
  {
    id: 'attention',
    title: 'Clusters that need attention',
    needs: 'clusters:read',
    least: list,
    place: { x: 6, y: 7, w: 6, h: 5 },
    Content: Attention,
  },
  {
    id: 'unread-notifications',
    title: 'Unread notifications',
    least: list,
    place: { x: 0, y: 12, w: 6, h: 4 },
    Content: Unread,
  },
  {
    id: 'modules',
    title: 'Modules',
    needs: 'modules:read',
    least: small,
    place: { x: 6, y: 12, w: 3, h: 3 },
    Content: ModuleNumbers,
  },
  {
    id: 'platform-update',
    title: 'Platform update',
    needs: 'platform:admin',
    least: small,
    place: { x: 9, y: 12, w: 3, h: 3 },
    Content: PlatformUpdate,
  },
]

export const widgetsFor = (permissions: readonly Permission[]): Widget[] =>
  widgets.filter(({ needs }) => needs === undefined || permissions.includes(needs))

/** Placed widgets. Others of a stored layout belong to another release or role. */
export interface Placed {
  widget: Widget
  place: GridPosition
}
