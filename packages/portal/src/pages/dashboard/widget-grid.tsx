import { type CSSProperties, type ReactNode, useId } from 'react'
import styles from './dashboard.module.css'
import { gapPixels, type GridPosition, rowPixels } from './grid.ts'
import type { PlacedWidget } from './widget.ts'

interface WidgetGridProps {
  placements: readonly PlacedWidget[]
  controlsOf?: (placedWidget: PlacedWidget) => ReactNode
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
    {placements.map((placedWidget) => (
      <div key={placedWidget.widget.id} className={styles['cell']} style={positionStyle(placedWidget.position)}>
        <WidgetFrame placed={placedWidget} controls={controlsOf?.(placedWidget)} />
      </div>
    ))}
  </div>
)

export function WidgetFrame({ placed, controls }: { placed: PlacedWidget; controls?: ReactNode }) {
  const id = useId()
  const { title, Content } = placed.widget
  const { selector } = placed.position
  return (
    <section className={styles['widget']} aria-labelledby={id}>
      <header className={styles['head']}>
        <h2 id={id}>{title}</h2>
        {selector !== undefined && <code className={styles['selector']}>{selector}</code>}
        {controls}
      </header>
      <div className={styles['body']}>
        <Content selector={selector} />
      </div>
    </section>
  )
}
