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

/** Something that can be put on the dashboard. */
export interface Widget {
  /** Stored in layouts: it never changes. */
  id: string
  title: string
  /** Whoever may not read it is not offered it. */
  needs?: Permission
  least: MinSize
  /** Where it stands as long as nobody has moved anything. */
  place: Omit<GridPosition, 'widgetId'>
  Content: ComponentType
}

const small = { w: 3, h: 2 }
const list = { w: 3, h: 3 }
const chart = { w: 4, h: 4 }

/** Everything that can be put on the dashboard, as it stands by default. */
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

/** What a user with these permissions can put on the dashboard. */
export const widgetsFor = (permissions: readonly Permission[]): Widget[] =>
  widgets.filter(({ needs }) => needs === undefined || permissions.includes(needs))

/** The widgets that have a place, with it; the others of a stored layout belong to another release or another role. */
export interface Placed {
  widget: Widget
  place: GridPosition
}
