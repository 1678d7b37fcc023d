import type { CSSProperties, ReactNode } from 'react'
import styles from './dashboard.module.css'
import { gapPixels, type GridPosition, rowPixels } from './grid.ts'
import { WidgetFrame } from './widget-frame.tsx'
import type { Placed, Widget } from './widget.ts'

interface WidgetGridProps {
  placed: readonly Placed[]
  controlsOf?: (widget: Widget) => ReactNode
}

/** CSS properties including custom ones. */
type Style = CSSProperties & Record<`--${string}`, string | number>

const gridStyle: Style = { '--row': `${rowPixels}px`, '--gap': `${gapPixels}px` }

const placeStyle = ({ x, y, w, h }: GridPosition): Style => ({
  '--column': x + 1,
  '--line': y + 1,
  '--width': w,
  '--height': h,
})

/** The widgets in their grid, or in one column on narrow screens. Both follow the reading order. */
export const WidgetGrid = ({ placed, controlsOf }: WidgetGridProps) => (
  <div className={styles['grid']} style={gridStyle}>
    {placed.map(({ widget, place }) => (
      <div key={widget.id} className={styles['cell']} style={placeStyle(place)}>
        <WidgetFrame widget={widget} controls={controlsOf?.(widget)} />
      </div>
    ))}
  </div>
)
