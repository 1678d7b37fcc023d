import { useMe } from '../../api/account.ts'
import type { Schemas } from '../../api/client.ts'
import { withWidget, fitToGrid, isSame, type GridPosition, compact, type Step, moveByKey } from './grid.ts'
import { useLayout } from './use-layout.ts'
import { type Placed, type Widget, widgetsFor } from './widget.ts'

type Stored = Schemas['WidgetPlacement'][]

const byDefault = (widgets: readonly Widget[]): GridPosition[] =>
  widgets.map(({ id, place }) => ({ widgetId: id, ...place }))

/** The positions of known widgets, each once. */
function shownOf(stored: Stored, widgets: readonly Widget[]): GridPosition[] {
  const places = widgets.flatMap(({ id, least }) => {
    const place = stored.find(({ widgetId }) => widgetId === id)
    return place === undefined ? [] : [fitToGrid(place, least)]
  })
  return compact(places)
}

/** The user's dashboard and its actions. */
export function useDashboard() {
  const widgets = widgetsFor(useMe().permissions)
  const { query, change, isSaving } = useLayout()
  const stored = query.data?.layout
  const places = stored === undefined ? compact(byDefault(widgets)) : shownOf(stored, widgets)
  const hidden = (stored ?? []).filter(({ widgetId }) => !widgets.some(({ id }) => id === widgetId))
  const arrange = (next: readonly GridPosition[]) => {
    if (!isSame(next, places)) change([...next, ...hidden])
  }
  const placed = places.flatMap((place): Placed[] => {
    const widget = widgets.find(({ id }) => id === place.widgetId)
    return widget === undefined ? [] : [{ widget, place }]
  })
  return {
    query,
    isSaving,
    placed,
    /** Widgets that can be added. */
    others: widgets.filter(({ id }) => !places.some(({ widgetId }) => widgetId === id)),
    arrange,
    step: ({ id, least }: Widget, step: Step) => arrange(moveByKey(places, id, step, least)),
    add: ({ id, place: { w, h } }: Widget) => arrange(withWidget(places, id, { w, h })),
    remove: ({ id }: Widget) => arrange(compact(places.filter(({ widgetId }) => widgetId !== id))),
    reset: () => arrange(compact(byDefault(widgets))),
  }
}

export type Dashboard = ReturnType<typeof useDashboard>
