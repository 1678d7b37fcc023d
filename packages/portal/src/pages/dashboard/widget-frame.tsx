import { type ReactNode, useId } from 'react'
import styles from './dashboard.module.css'
import type { Widget } from './widget.ts'

interface WidgetFrameProps {
  widget: Widget
  /** Where the dashboard is being arranged: what one can do with the widget. */
  controls?: ReactNode
}

/** A widget with its name. */
export function WidgetFrame({ widget: { title, Content }, controls }: WidgetFrameProps) {
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
