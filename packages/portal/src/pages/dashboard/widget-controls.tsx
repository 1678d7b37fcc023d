import {
  ArrowDown,
  ArrowLeft,
  ArrowRight,
  ArrowUp,
  FoldHorizontal,
  FoldVertical,
  Move,
  Tag,
  Trash2,
  UnfoldHorizontal,
  UnfoldVertical,
} from 'lucide-react'
import { useState } from 'react'
import { incompleteError } from '../../api/api-error.ts'
import { IconButton } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { useDraft } from '../../ui/draft.ts'
import { Form } from '../../ui/form.tsx'
import { selectorError, SelectorField } from '../clusters/selector-field.tsx'
import styles from './dashboard.module.css'
import type { Step } from './grid.ts'

const steps = [
  ['left', 'Move left', ArrowLeft],
  ['right', 'Move right', ArrowRight],
  ['up', 'Move up', ArrowUp],
  ['down', 'Move down', ArrowDown],
  ['narrower', 'Make narrower', FoldHorizontal],
  ['wider', 'Make wider', UnfoldHorizontal],
  ['shorter', 'Make shorter', FoldVertical],
  ['taller', 'Make taller', UnfoldVertical],
] as const satisfies (readonly [Step, string, unknown])[]

interface WidgetControlsProps {
  title: string
  /** Undefined if the dashboard has a single column, where widgets cannot be moved. */
  onStep?: (step: Step) => void
  onRemove: () => void
  /** The label selector of a widget about clusters; '' for all clusters. */
  selector?: string
  onSelect?: (selector: string) => void
}

export function WidgetControls({ title, onStep, onRemove, selector = '', onSelect }: WidgetControlsProps) {
  const [isOpen, setIsOpen] = useState(false)
  const [isSelecting, setIsSelecting] = useState(false)
  return (
    <div className={styles['controls']}>
      {onStep && (
        <IconButton
          icon={Move}
          label={`Move or resize ${title}`}
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
        />
      )}
      {onSelect && <IconButton icon={Tag} label={`Label selector of ${title}`} onClick={() => setIsSelecting(true)} />}
      <Dialog isOpen={isSelecting} onClose={() => setIsSelecting(false)} title={`Clusters of ${title}`}>
        <SelectorForm
          selector={selector}
          onSave={(nextSelector) => {
            onSelect?.(nextSelector)
            setIsSelecting(false)
          }}
        />
      </Dialog>
      <IconButton icon={Trash2} label={`Remove ${title}`} onClick={onRemove} />
      {onStep && isOpen && (
        <div role="group" aria-label={`Move or resize ${title}`} className={styles['steps']}>
          {steps.map(([step, label, icon]) => (
            <IconButton key={step} icon={icon} label={label} onClick={() => onStep(step)} />
          ))}
        </div>
      )}
    </div>
  )
}

function SelectorForm({ selector, onSave }: { selector: string; onSave: (selector: string) => void }) {
  const [text, setText] = useDraft('widget selector', selector)
  const save = async () => {
    const nextSelector = text.trim()
    const error = nextSelector === '' ? undefined : selectorError(nextSelector)
    if (error !== undefined) throw incompleteError(error.message)
    onSave(nextSelector)
  }
  return (
    <Form submitLabel="Save" onSubmit={save}>
      <SelectorField
        value={text}
        onChange={setText}
        isCounted
        hint="Without a selector, the widget shows all clusters."
      />
    </Form>
  )
}
