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

const selectableIds = new Set(['cluster-health', 'attention'])

const smallSize = { w: 3, h: 2 }
const listSize = { w: 3, h: 3 }
const chartSize = { w: 4, h: 4 }

const defineWidget = (
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
  hasSelector: selectableIds.has(id),
  ...(permission && { permission }),
})

// The positions are those of the default layout.
const widgets: readonly Widget[] = [
  defineWidget('cluster-health', 'Cluster health', ClusterNumbers, smallSize, [0, 0, 4, 2], 'clusters:read'),
  defineWidget('job-numbers', 'Jobs', JobNumbers, smallSize, [4, 0, 5, 2], 'jobs:read'),
  defineWidget('platform-health', 'Platform health', PlatformHealth, smallSize, [9, 0, 3, 2]),
  defineWidget('clusters-over-time', 'Clusters over time', ClustersOverTime, chartSize, [0, 2, 6, 5], 'clusters:read'),
  defineWidget('jobs-over-time', 'Jobs over time', JobsOverTime, chartSize, [6, 2, 6, 5], 'jobs:read'),
  defineWidget('recent-jobs', 'Recent jobs', RecentJobs, listSize, [0, 7, 6, 5], 'jobs:read'),
  defineWidget('attention', 'Clusters that need attention', Attention, listSize, [6, 7, 6, 5], 'clusters:read'),
  defineWidget('unread-notifications', 'Unread notifications', Unread, listSize, [0, 12, 6, 4]),
  defineWidget('modules', 'Modules', ModuleNumbers, smallSize, [6, 12, 3, 3], 'modules:read'),
  defineWidget(
    'cluster-breakdown',
    'Clusters by site or label',
    ClusterBreakdown,
    listSize,
    [0, 16, 6, 5],
    'clusters:read',
  ),
  defineWidget('platform-update', 'Platform update', PlatformUpdate, smallSize, [9, 12, 3, 3], 'platform:admin'),
]

export const widgetsFor = (permissions: readonly Permission[]): Widget[] =>
  widgets.filter(({ permission }) => permission === undefined || permissions.includes(permission))

export interface PlacedWidget {
  widget: Widget
  position: GridPosition
}
