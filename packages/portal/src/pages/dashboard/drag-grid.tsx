import { type ReactNode, useState } from 'react'
import GridLayout, { useContainerWidth } from 'react-grid-layout'
import styles from './dashboard.module.css'
import { columnCount, gapPixels, type GridPosition, rowPixels } from './grid.ts'
import { WidgetFrame } from './widget-grid.tsx'
import type { PlacedWidget } from './widget.ts'

interface DragGridProps {
  placements: readonly PlacedWidget[]
  controlsOf: (placedWidget: PlacedWidget) => ReactNode
  /** Called with all positions at the end of each drag or resize. */
  onArrange: (positions: readonly GridPosition[]) => void
}

const gridConfig = {
  cols: columnCount,
  rowHeight: rowPixels,
  margin: [gapPixels, gapPixels],
  containerPadding: [0, 0],
} as const

export function DragGrid({ placements, controlsOf, onArrange }: DragGridProps) {
  const { width, containerRef, mounted } = useContainerWidth()
  // The DOM order stays the same while dragging, because moving an element would lose the focus.
  const [order] = useState(() => placements.map(({ widget }) => widget.id))
  const indexOf = ({ widget }: PlacedWidget) => (order.includes(widget.id) ? order.indexOf(widget.id) : order.length)
  const onStop = (layout: readonly { i: string; x: number; y: number; w: number; h: number }[]) =>
    onArrange(
      layout.flatMap(({ i, x, y, w, h }) => {
        const placedWidget = placements.find(({ widget }) => widget.id === i)
        return placedWidget === undefined ? [] : [{ ...placedWidget.position, x, y, w, h }]
      }),
    )
  const layout = placements.map(({ widget: { minSize }, position: { widgetId, x, y, w, h } }) => ({
    i: widgetId,
    x,
    y,
    w,
    h,
    minW: minSize.w,
    minH: minSize.h,
  }))
  return (
    <div ref={containerRef} className={styles['dragged']}>
      {/* Without this element, the grid library adds a style element, which the content security policy blocks. */}
      <span id="react-draggable-style-el" hidden />
      {mounted && (
        <GridLayout
          width={width}
          layout={layout}
          gridConfig={gridConfig}
          dragConfig={{ handle: 'header', cancel: 'button', allowMobileScroll: true }}
          onDragStop={onStop}
          onResizeStop={onStop}
        >
          {placements
            .toSorted((a, b) => indexOf(a) - indexOf(b))
            .map((placedWidget) => (
              <div key={placedWidget.widget.id}>
                <WidgetFrame placed={placedWidget} controls={controlsOf(placedWidget)} />
              </div>
            ))}
        </GridLayout>
      )}
    </div>
  )
}
