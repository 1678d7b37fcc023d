import { type ReactNode, useId } from 'react'
import styles from './dashboard.module.css'
import type { Widget } from './widget.ts'

interface WidgetFrameProps {
  widget: Widget
  /** The controls of the edit mode. */
  controls?: ReactNode
}

/** A widget with its title. */
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
