import type { CSSProperties, ReactNode } from 'react'
import styles from './dashboard.module.css'
import { gapPixels, type GridPosition, rowPixels } from './grid.ts'
import { WidgetFrame } from './widget-frame.tsx'
import type { Placed, Widget } from './widget.ts'

interface WidgetGridProps {
  placed: readonly Placed[]
  controlsOf?: (widget: Widget) => ReactNode
}

/** Style with properties of the style sheet's own. */
type Style = CSSProperties & Record<`--${string}`, string | number>

const gridStyle: Style = { '--row': `${rowPixels}px`, '--gap': `${gapPixels}px` }

const placeStyle = ({ x, y, w, h }: GridPosition): Style => ({
  '--column': x + 1,
  '--line': y + 1,
  '--width': w,
  '--height': h,
})

/** The widgets where they stand; below each other where there is no room for columns. They are read in that order, too. */
export const WidgetGrid = ({ placed, controlsOf }: WidgetGridProps) => (
  <div className={styles['grid']} style={gridStyle}>
    {placed.map(({ widget, place }) => (
      <div key={widget.id} className={styles['cell']} style={placeStyle(place)}>
        <WidgetFrame widget={widget} controls={controlsOf?.(widget)} />
      </div>
    ))}
  </div>
)
