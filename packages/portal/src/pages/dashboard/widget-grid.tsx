import { type CSSProperties, type ReactNode, useId } from 'react'
import styles from './dashboard.module.css'
import { gapPixels, type GridPosition, rowPixels } from './grid.ts'
import type { PlacedWidget, Widget } from './widget.ts'

interface WidgetGridProps {
  placements: readonly PlacedWidget[]
  controlsOf?: (widget: Widget) => ReactNode
}

// React's type lacks custom properties.
type Style = CSSProperties & Record<`--${string}`, string | number>

const gridStyle: Style = { '--row': `${rowPixels}px`, '--gap': `${gapPixels}px` }

const positionStyle = ({ x, y, w, h }: GridPosition): Style => ({
  '--column': x + 1,
  '--line': y + 1,
  '--width': w,
  '--height': h,
})

/** The widgets in their grid, or in one column on narrow screens. Both have the same order. */
export const WidgetGrid = ({ placements, controlsOf }: WidgetGridProps) => (
  <div className={styles['grid']} style={gridStyle}>
    {placements.map(({ widget, position }) => (
      <div key={widget.id} className={styles['cell']} style={positionStyle(position)}>
        <WidgetFrame widget={widget} controls={controlsOf?.(widget)} />
      </div>
    ))}
  </div>
)

export function WidgetFrame({ widget: { title, Content }, controls }: { widget: Widget; controls?: ReactNode }) {
  const id = useId()
  return (
    <section className={styles['widget']} aria-labelledby={id}>
      <header className={styles['head']}>
        <h2 id={id}>{title}</h2>
        {controls}
      </header>
      <div className={styles['body']}>
        <Content />
      </div>
    </section>
  )
}
