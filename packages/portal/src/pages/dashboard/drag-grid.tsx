import { type ReactNode, useState } from 'react'
import GridLayout, { useContainerWidth } from 'react-grid-layout'
import styles from './dashboard.module.css'
import { columns, gapPixels, type GridPosition, rowPixels } from './grid.ts'
import { WidgetFrame } from './widget-frame.tsx'
import type { Placed, Widget } from './widget.ts'

interface DragGridProps {
  placed: readonly Placed[]
  controlsOf: (widget: Widget) => ReactNode
  /** Called at the end of each gesture. */
  onArrange: (places: readonly GridPosition[]) => void
}

const gridConfig = {
  cols: columns,
  rowHeight: rowPixels,
  margin: [gapPixels, gapPixels],
  containerPadding: [0, 0],
} as const

/** The widgets in a grid with drag and resize. */
export function DragGrid({ placed, controlsOf, onArrange }: DragGridProps) {
  const { width, containerRef, mounted } = useContainerWidth()
  // Keeps the DOM order while dragging: moving an element would lose the focus.
  const [order] = useState(() => placed.map(({ widget }) => widget.id))
  const rankOf = ({ widget }: Placed) => (order.includes(widget.id) ? order.indexOf(widget.id) : order.length)
  const finish = (layout: readonly { i: string; x: number; y: number; w: number; h: number }[]) =>
    onArrange(layout.map(({ i, x, y, w, h }) => ({ widgetId: i, x, y, w, h })))
  const layout = placed.map(({ widget: { least }, place: { widgetId, ...place } }) => ({
    i: widgetId,
    ...place,
    minW: least.w,
    minH: least.h,
  }))
  return (
    <div ref={containerRef} className={styles['dragged']}>
      {/* Without an element with this id, the grid adds a <style> that the content security policy blocks. */}
      <span id="react-draggable-style-el" hidden />
      {mounted && (
        <GridLayout
          width={width}
          layout={layout}
          gridConfig={gridConfig}
          dragConfig={{ handle: 'header', cancel: 'button', allowMobileScroll: true }}
          onDragStop={finish}
          onResizeStop={finish}
        >
          {placed
            .toSorted((a, b) => rankOf(a) - rankOf(b))
            .map(({ widget }) => (
              <div key={widget.id}>
                <WidgetFrame widget={widget} controls={controlsOf(widget)} />
              </div>
            ))}
        </GridLayout>
      )}
    </div>
  )
}
