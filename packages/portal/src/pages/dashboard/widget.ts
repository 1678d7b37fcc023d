import type { ComponentType } from 'react'
import type { Permission } from '../../api/account.ts'
import type { GridPosition, MinSize } from './grid.ts'
import { ClustersOverTime, JobsOverTime } from './widgets/history-charts.tsx'
import { Attention, RecentJobs, Unread } from './widgets/lists.tsx'
import { ClusterNumbers, JobNumbers, ModuleNumbers } from './widgets/numbers.tsx'
import { PlatformHealth, PlatformUpdate } from './widgets/platform.tsx'

export interface Widget {
  /** Stored in layouts: never change it. */
  id: string
  title: string
  /** Users without this permission are not offered the widget. */
  permission?: Permission
  minSize: MinSize
  /** The default position. */
  position: Omit<GridPosition, 'widgetId'>
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
    permission: 'clusters:read',
    minSize: small,
    position: { x: 0, y: 0, w: 4, h: 2 },
    Content: ClusterNumbers,
  },
  {
    id: 'job-numbers',
    title: 'Jobs',
    permission: 'jobs:read',
    minSize: small,
    position: { x: 4, y: 0, w: 5, h: 2 },
    Content: JobNumbers,
  },
  {
    id: 'platform-health',
    title: 'Platform health',
    minSize: small,
    position: { x: 9, y: 0, w: 3, h: 2 },
    Content: PlatformHealth,
  },
  {
    id: 'clusters-over-time',
    title: 'Clusters over time',
    permission: 'clusters:read',
    minSize: chart,
    position: { x: 0, y: 2, w: 6, h: 5 },
    Content: ClustersOverTime,
  },
  {
    id: 'jobs-over-time',
    title: 'Jobs over time',
    permission: 'jobs:read',
    minSize: chart,
    position: { x: 6, y: 2, w: 6, h: 5 },
    Content: JobsOverTime,
  },
  {
    id: 'recent-jobs',
    title: 'Recent jobs',
    permission: 'jobs:read',
    minSize: list,
    position: { x: 0, y: 7, w: 6, h: 5 },
    Content: RecentJobs,
  },
  {
    id: 'attention',
    title: 'Clusters that need attention',
    permission: 'clusters:read',
    minSize: list,
    position: { x: 6, y: 7, w: 6, h: 5 },
    Content: Attention,
  },
  {
    id: 'unread-notifications',
    title: 'Unread notifications',
    minSize: list,
    position: { x: 0, y: 12, w: 6, h: 4 },
    Content: Unread,
  },
  {
    id: 'modules',
    title: 'Modules',
    permission: 'modules:read',
    minSize: small,
    position: { x: 6, y: 12, w: 3, h: 3 },
    Content: ModuleNumbers,
  },
  {
    id: 'platform-update',
    title: 'Platform update',
    permission: 'platform:admin',
    minSize: small,
    position: { x: 9, y: 12, w: 3, h: 3 },
    Content: PlatformUpdate,
  },
]

export const widgetsFor = (permissions: readonly Permission[]): Widget[] =>
  widgets.filter(({ permission }) => permission === undefined || permissions.includes(permission))

/** A visible widget. Others of a stored layout belong to another release or role. */
export interface PlacedWidget {
  widget: Widget
  position: GridPosition
}
