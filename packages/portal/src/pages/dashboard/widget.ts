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
  position: Omit<GridPosition, 'widgetId'>
  Content: ComponentType
}

const small = { w: 3, h: 2 }
const list = { w: 3, h: 3 }
const chart = { w: 4, h: 4 }

const widget = (
  id: string,
  title: string,
  Content: ComponentType,
  minSize: MinSize,
  [x, y, w, h]: readonly [x: number, y: number, w: number, h: number],
  permission?: Permission,
): Widget => ({ id, title, Content, minSize, position: { x, y, w, h }, ...(permission && { permission }) })

/** All widgets, in their default positions. */
const widgets: readonly Widget[] = [
  widget('cluster-health', 'Cluster health', ClusterNumbers, small, [0, 0, 4, 2], 'clusters:read'),
  widget('job-numbers', 'Jobs', JobNumbers, small, [4, 0, 5, 2], 'jobs:read'),
  widget('platform-health', 'Platform health', PlatformHealth, small, [9, 0, 3, 2]),
  widget('clusters-over-time', 'Clusters over time', ClustersOverTime, chart, [0, 2, 6, 5], 'clusters:read'),
  widget('jobs-over-time', 'Jobs over time', JobsOverTime, chart, [6, 2, 6, 5], 'jobs:read'),
  widget('recent-jobs', 'Recent jobs', RecentJobs, list, [0, 7, 6, 5], 'jobs:read'),
  widget('attention', 'Clusters that need attention', Attention, list, [6, 7, 6, 5], 'clusters:read'),
  widget('unread-notifications', 'Unread notifications', Unread, list, [0, 12, 6, 4]),
  widget('modules', 'Modules', ModuleNumbers, small, [6, 12, 3, 3], 'modules:read'),
  widget('platform-update', 'Platform update', PlatformUpdate, small, [9, 12, 3, 3], 'platform:admin'),
]

export const widgetsFor = (permissions: readonly Permission[]): Widget[] =>
  widgets.filter(({ permission }) => permission === undefined || permissions.includes(permission))

/** A visible widget. Others of a stored layout belong to another release or role. */
export interface PlacedWidget {
  widget: Widget
  position: GridPosition
}
