import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { type ReactNode, useMemo, useRef } from 'react'
import { Button, IconButton } from './button.tsx'
import { classes } from './class-names.ts'
import styles from './dialog.module.css'
import { currentChanges, DraftScope } from './draft.ts'
import { Form } from './form.tsx'
import { mayLeave } from './leave.tsx'
import { isOfModal } from './modal.tsx'

interface DialogProps {
  isOpen: boolean
  onClose: () => void
  title: string
  description?: ReactNode
  isWide?: boolean
  /** Whether the dialog asks before it discards input that was changed since it was opened. The default is true. */
  hasDraft?: boolean
  children: ReactNode
}

/**
 * A modal dialog. The focus moves to its first field, stays in the dialog, and returns when the dialog closes. The
 * Escape key, the close button and a click on the backdrop close the dialog, after a confirmation if it has unsaved
 * input.
 */
export function Dialog({
  isOpen,
  onClose,
  title,
  description,
  isWide = false,
  hasDraft = true,
  children,
}: DialogProps) {
  const popup = useRef<HTMLDivElement>(null)
  // The scope is captured before the forms of the dialog restore their drafts.
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- once for each opening
  const scope = useMemo(currentChanges, [isOpen])
  const close = async () => {
    if (!hasDraft || (await mayLeave(scope))) onClose()
  }
  return (
    <Base.Root open={isOpen} onOpenChange={(open, { event }) => !open && !isOfModal(event) && void close()}>
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
          <DraftScope value={scope}>{children}</DraftScope>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

export const CancelButton = () => <Base.Close render={<Button />}>Cancel</Base.Close>

const firstField = (popup: HTMLElement | null): HTMLElement | null | undefined =>
  popup?.querySelector<HTMLElement>('form :is(input, select, textarea):not(:disabled, [type=hidden])')

interface ConfirmProps extends Omit<DialogProps, 'children' | 'isWide'> {
  confirmLabel: string
  /** Runs the action. The dialog closes on success and shows a thrown error. */
  onConfirm: () => Promise<unknown>
  variant?: 'primary' | 'danger'
  children?: ReactNode
}

/** A dialog that confirms an action. The default variant is for irreversible actions. */
export const Confirm = ({ confirmLabel, onConfirm, variant = 'danger', children, ...dialog }: ConfirmProps) => (
  <Dialog {...dialog}>
    <Form
      submitLabel={confirmLabel}
      variant={variant}
      hasDraft={false}
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
