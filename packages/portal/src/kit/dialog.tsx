import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
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

/** A window over the page. Escape, the cross and a click beside it close it; the focus stays in it and goes back after. */
export const Dialog = ({ isOpen, onClose, title, description, isWide = false, children }: DialogProps) => (
  <Base.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
    <Base.Portal>
      <Base.Backdrop className={styles['veil']} />
      <Base.Popup className={classes(styles['dialog'], isWide && styles['wide'])}>
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
