import { Plus, RotateCcw } from 'lucide-react'
import { useState, useSyncExternalStore } from 'react'
import { Button } from '../../ui/button.tsx'
import styles from './dashboard.module.css'
import { DragGrid } from './drag-grid.tsx'
import type { GridPosition, Step } from './grid.ts'
import type { Dashboard } from './use-dashboard.ts'
import { WidgetControls } from './widget-controls.tsx'
import { WidgetGrid } from './widget-grid.tsx'
import type { PlacedWidget, Widget } from './widget.ts'

/** The edit mode of the dashboard. It is loaded on first use. */
export function Editing({ dashboard }: { dashboard: Dashboard }) {
  const { placements, others, arrange, add, reset, isSaving } = dashboard
  const hasColumns = useHasColumns()
  const [movedWidget, setMovedWidget] = useState<Widget>()
  const position = placements.find(({ widget }) => widget.id === movedWidget?.id)?.position
  const step = (widget: Widget, name: Step) => {
    setMovedWidget(widget)
    dashboard.step(widget, name)
  }
  const controlsOf = ({ widget, position: { selector = '' } }: PlacedWidget) => (
    <WidgetControls
      title={widget.title}
      {...(widget.hasSelector && { selector, onSelect: (next: string) => dashboard.select(widget, next) })}
      {...(hasColumns && { onStep: (name: Step) => step(widget, name) })}
      onRemove={() => dashboard.remove(widget)}
    />
  )
  return (
    <>
      <section aria-label="Dashboard editor" className={styles['tools']}>
        <p>
          {hasColumns
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
          <span className="visually-hidden">
            {movedWidget && position && ` ${positionText(movedWidget, position)}`}
          </span>
        </p>
      </section>
      {hasColumns ? (
        <DragGrid placements={placements} controlsOf={controlsOf} onArrange={arrange} />
      ) : (
        <WidgetGrid placements={placements} controlsOf={controlsOf} />
      )}
    </>
  )
}

const positionText = ({ title }: Widget, { x, y, w, h }: GridPosition): string =>
  `${title}: column ${x + 1}, row ${y + 1}, ${w} columns wide, ${h} rows tall.`

// The same width as in the style sheet: wider screens have several columns.
const wideScreenQuery = matchMedia('(width >= 60rem)')

function subscribe(listener: () => void): () => void {
  wideScreenQuery.addEventListener('change', listener)
  return () => wideScreenQuery.removeEventListener('change', listener)
}

export const useHasColumns = (): boolean => useSyncExternalStore(subscribe, () => wideScreenQuery.matches)
