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

/** A window over the page. The focus goes to its first field, stays in it, and goes back after; Escape, the cross and a click beside it close it. */
export function Dialog({ isOpen, onClose, title, description, isWide = false, children }: DialogProps) {
  const popup = useRef<HTMLDivElement>(null)
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Base.Portal>
        <Base.Backdrop className={styles['veil']} />
        <Base.Popup
          ref={popup}
          className={classes(styles['dialog'], isWide && styles['wide'])}
          // Where a name is asked for one begins to type; on a touch screen the keyboard would hide the rest.
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
  /** What the button says that does it: a verb. */
  confirmLabel: string
  /** Closes the dialog when it has succeeded; what it throws is shown. */
  onConfirm: () => Promise<unknown>
  look?: 'primary' | 'danger'
  children?: ReactNode
}

/** Asks before something is done that cannot be undone. */
export const Confirm = ({ confirmLabel, onConfirm, look = 'danger', children, ...dialog }: ConfirmProps) => (
  <Dialog {...dialog}>
    <Form
      submitLabel={confirmLabel}
      look={look}
      actions={<Button onClick={dialog.onClose}>Keep as it is</Button>}
      onSubmit={async () => {
        await onConfirm()
        dialog.onClose()
      }}
    >
      {children}
    </Form>
  </Dialog>
)
