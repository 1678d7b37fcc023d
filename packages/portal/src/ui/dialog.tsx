import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { type ReactNode, useRef } from 'react'
import { Button, IconButton } from './button.tsx'
import { classes } from './class-names.ts'
import styles from './dialog.module.css'
import { Form } from './form.tsx'

interface DialogProps {
  isOpen: boolean
  onClose: () => void
  title: string
  description?: ReactNode
  isWide?: boolean
  children: ReactNode
}

/**
 * A modal dialog. The focus moves to its first field, stays in the dialog, and returns when it closes. The Escape key,
 * the close button and a click on the backdrop close it.
 */
export function Dialog({ isOpen, onClose, title, description, isWide = false, children }: DialogProps) {
  const popup = useRef<HTMLDivElement>(null)
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles['veil']} />
        <Base.Popup
          ref={popup}
          className={classes(styles['dialog'], isWide && styles['wide'])}
          // On touch screens the keyboard would cover the dialog, so no field receives the focus.
          initialFocus={(openedBy) => (openedBy === 'touch' ? true : (firstField(popup.current) ?? true))}
        >
          <div className={styles['head']}>
            <Base.Title>{title}</Base.Title>
            <Base.Close render={<IconButton label="Close" icon={X} />} />
          </div>
          {description !== undefined && (
            <Base.Description className={styles['description']} render={<div />}>
              {description}
            </Base.Description>
          )}
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

const firstField = (popup: HTMLElement | null): HTMLElement | null | undefined =>
  popup?.querySelector<HTMLElement>('form :is(input, select, textarea):not(:disabled, [type=hidden])')

interface ConfirmProps extends Omit<DialogProps, 'children' | 'isWide'> {
  confirmLabel: string
  /** Runs the action. The dialog closes on success and shows a thrown error. */
  onConfirm: () => Promise<unknown>
  variant?: 'primary' | 'danger'
  children?: ReactNode
}

/** A dialog that confirms an irreversible action. */
export const Confirm = ({ confirmLabel, onConfirm, variant = 'danger', children, ...dialog }: ConfirmProps) => (
  <Dialog {...dialog}>
    <Form
      submitLabel={confirmLabel}
      variant={variant}
      actions={<Button onClick={dialog.onClose}>Cancel</Button>}
      onSubmit={async () => {
        await onConfirm()
        dialog.onClose()
      }}
    >
      {children}
    </Form>
  </Dialog>
)
