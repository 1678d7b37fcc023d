import { Plus, RotateCcw } from 'lucide-react'
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import styles from './dashboard.module.css'
import { DragGrid } from './drag-grid.tsx'
import type { GridPosition, Step } from './grid.ts'
import type { Dashboard } from './use-dashboard.ts'
import { useHasRoom } from './use-has-room.ts'
import { WidgetControls } from './widget-controls.tsx'
import { WidgetGrid } from './widget-grid.tsx'
import type { Widget } from './widget.ts'

/** The edit mode of the dashboard, loaded on first use. */
export function Editing({ dashboard }: { dashboard: Dashboard }) {
  const { placed, others, arrange, add, reset, isSaving } = dashboard
  const hasRoom = useHasRoom()
  const [moved, setMoved] = useState<Widget>()
  const place = placed.find(({ widget }) => widget.id === moved?.id)?.place
  const step = (widget: Widget, name: Step) => {
    setMoved(widget)
    dashboard.step(widget, name)
  }
  const controlsOf = (widget: Widget) => (
    <WidgetControls
      title={widget.title}
      {...(hasRoom && { onStep: (name: Step) => step(widget, name) })}
      onRemove={() => dashboard.remove(widget)}
    />
  )
  return (
    <>
      <section aria-label="Dashboard editor" className={styles['tools']}>
        <p>
          {hasRoom
            ? 'Drag a widget by its title, resize it at its corner, or use its arrow buttons.'
            : 'Widen the window to move and resize widgets.'}
        </p>
        <div className={styles['buttons']}>
          {others.map((widget) => (
            <Button key={widget.id} icon={Plus} onClick={() => add(widget)}>
              Add {widget.title}
            </Button>
          ))}
          <Button icon={RotateCcw} onClick={reset}>
            Reset to default
          </Button>
        </div>
        <p role="status">
          {isSaving ? 'Saving …' : 'Saved'}
          <span className="visually-hidden">{moved && place && ` ${positionText(moved, place)}`}</span>
        </p>
      </section>
      {hasRoom ? (
        <DragGrid placed={placed} controlsOf={controlsOf} onArrange={arrange} />
      ) : (
        <WidgetGrid placed={placed} controlsOf={controlsOf} />
      )}
    </>
  )
}

const positionText = ({ title }: Widget, { x, y, w, h }: GridPosition): string =>
  `${title}: column ${x + 1}, row ${y + 1}, ${w} columns wide, ${h} rows tall.`
