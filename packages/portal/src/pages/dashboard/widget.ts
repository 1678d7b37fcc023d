import type { ComponentType } from 'react'
import type { Permission } from '../../api/account.ts'
import type { GridPosition, MinSize } from './grid.ts'
import type { WidgetProps } from './widgets/cluster-counts.ts'
import { ClusterBreakdown } from './widgets/breakdown.tsx'
import { ClustersOverTime, JobsOverTime } from './widgets/history-charts.tsx'
import { Attention, RecentJobs, Unread } from './widgets/lists.tsx'
import { ClusterNumbers, JobNumbers, ModuleNumbers } from './widgets/numbers.tsx'
import { PlatformHealth, PlatformUpdate } from './widgets/platform.tsx'

export interface Widget {
  /** Part of stored layouts, so it must never change. */
  id: string
  title: string
  /** The widget is available only to users with this permission. */
  permission?: Permission
  minSize: MinSize
  position: Omit<GridPosition, 'widgetId'>
  Content: ComponentType<WidgetProps>
  /** Whether a label selector can restrict the widget to some clusters. */
  hasSelector: boolean
}

const selectable = new Set(['cluster-health', 'attention'])

const small = { w: 3, h: 2 }
const list = { w: 3, h: 3 }
const chart = { w: 4, h: 4 }

const widget = (
  id: string,
  title: string,
  Content: ComponentType<WidgetProps>,
  minSize: MinSize,
  [x, y, w, h]: readonly [x: number, y: number, w: number, h: number],
  permission?: Permission,
): Widget => ({
  id,
  title,
  Content,
  minSize,
  position: { x, y, w, h },
  hasSelector: selectable.has(id),
  ...(permission && { permission }),
})

// The positions are those of the default layout.
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
  widget('cluster-breakdown', 'Clusters by site or label', ClusterBreakdown, list, [0, 16, 6, 5], 'clusters:read'),
  widget('platform-update', 'Platform update', PlatformUpdate, small, [9, 12, 3, 3], 'platform:admin'),
]

export const widgetsFor = (permissions: readonly Permission[]): Widget[] =>
  widgets.filter(({ permission }) => permission === undefined || permissions.includes(permission))

/** A widget of the layout with its position. */
export interface PlacedWidget {
  widget: Widget
  position: GridPosition
}
