import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { createPortal } from 'react-dom'
import { classes } from './class-names.ts'
import styles from './dialog.module.css'

interface ModalProps {
  title: string
  /** Called when the user presses Escape. If it is not set, the dialog stays open. */
  onCancel?: () => void
  /** Whether the page behind is hidden. */
  isCovering?: boolean
  children: ReactNode
}

/**
 * A dialog above the page and its other dialogs. The browser keeps the focus in the dialog and returns the focus when
 * the dialog closes.
 */
export function Modal({ title, onCancel, isCovering = false, children }: ModalProps) {
  const id = useId()
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return createPortal(
    <dialog
      ref={element}
      aria-labelledby={id}
      className={classes(styles['dialog'], isCovering && styles['covering'])}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault()
        onCancel?.()
      }}
      // Some browsers close a dialog despite `preventDefault` if the user repeats the close request. `onClose` then
      // opens it again.
      onCancel={(event) => event.preventDefault()}
      onClose={() => element.current?.isConnected && element.current.showModal()}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>,
    document.body,
  )
}

/** Whether a modal is open or contains the target of an event. The dialogs below the modal must ignore the event. */
export const isOfModal = ({ target }: Event): boolean =>
  document.querySelector('dialog[open]') !== null || (target instanceof Element && target.closest('dialog') !== null)
