import {
  ArrowDown,
  ArrowLeft,
  ArrowRight,
  ArrowUp,
  FoldHorizontal,
  FoldVertical,
  Move,
  Trash2,
  UnfoldHorizontal,
  UnfoldVertical,
} from 'lucide-react'
import { useState } from 'react'
import { IconButton } from '../../ui/button.tsx'
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
}

/** Buttons that move and resize a widget without a pointer. */
export function WidgetControls({ title, onStep, onRemove }: WidgetControlsProps) {
  const [isOpen, setIsOpen] = useState(false)
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
