import { useMe } from '../../api/account.ts'
import type { Schemas } from '../../api/client.ts'
import { withWidget, fitToGrid, isSameLayout, type GridPosition, compact, type Step, moveByKey } from './grid.ts'
import { useLayout } from './use-layout.ts'
import { type PlacedWidget, type Widget, widgetsFor } from './widget.ts'

type StoredPlacements = Schemas['WidgetPlacement'][]

const defaultPositions = (widgets: readonly Widget[]): GridPosition[] =>
  widgets.map(({ id, position }) => ({ widgetId: id, ...position }))

// A stored layout can contain widgets of another release that this one does not have, and the same widget twice.
function visiblePositions(storedPlacements: StoredPlacements, widgets: readonly Widget[]): GridPosition[] {
  const positions = widgets.flatMap(({ id, minSize }) => {
    const position = storedPlacements.find(({ widgetId }) => widgetId === id)
    return position === undefined ? [] : [fitToGrid(position, minSize)]
  })
  return compact(positions)
}

export function useDashboard() {
  const widgets = widgetsFor(useMe().permissions)
  const { query, change, isSaving } = useLayout()
  const layout = query.data?.layout
  const positions = layout === undefined ? compact(defaultPositions(widgets)) : visiblePositions(layout, widgets)
  const hiddenPlacements = (layout ?? []).filter(({ widgetId }) => !widgets.some(({ id }) => id === widgetId))
  const arrange = (nextPositions: readonly GridPosition[]) => {
    if (!isSameLayout(nextPositions, positions)) change([...nextPositions, ...hiddenPlacements])
  }
  const placements = positions.flatMap((position): PlacedWidget[] => {
    const widget = widgets.find(({ id }) => id === position.widgetId)
    return widget === undefined ? [] : [{ widget, position }]
  })
  return {
    query,
    isSaving,
    placements,
    others: widgets.filter(({ id }) => !positions.some(({ widgetId }) => widgetId === id)),
    arrange,
    step: ({ id, minSize }: Widget, step: Step) => arrange(moveByKey(positions, id, step, minSize)),
    add: ({ id, position: { w, h } }: Widget) => arrange(withWidget(positions, id, { w, h })),
    remove: ({ id }: Widget) => arrange(compact(positions.filter(({ widgetId }) => widgetId !== id))),
    select: ({ id }: Widget, selector: string) =>
      arrange(
        positions.map(({ selector: before, ...position }) => {
          const nextSelector = position.widgetId === id ? selector : before
          return { ...position, ...(nextSelector && { selector: nextSelector }) }
        }),
      ),
    reset: () => arrange(compact(defaultPositions(widgets))),
  }
}

export type Dashboard = ReturnType<typeof useDashboard>
