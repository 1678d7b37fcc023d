import { Toast } from '@base-ui/react/toast'
import { X } from 'lucide-react'
import { useEffect } from 'react'
import { IconButton } from './button.tsx'
import { classes } from './class-names.ts'
import type { Message } from './toast.tsx'
import styles from './toast.module.css'

const manager = Toast.createToastManager<{ traceId: string | undefined }>()

interface ToastStackProps {
  /** Called once when toasts can be shown. */
  onReady: (show: (message: Message) => void) => void
}

export const ToastStack = ({ onReady }: ToastStackProps) => (
  <Toast.Provider toastManager={manager}>
    <Toast.Portal>
      <Toast.Viewport className={styles['viewport']}>
        <ToastList onReady={onReady} />
      </Toast.Viewport>
    </Toast.Portal>
  </Toast.Provider>
)

function ToastList({ onReady }: ToastStackProps) {
  useEffect(() => onReady(({ traceId, ...message }) => void manager.add({ ...message, data: { traceId } })), [onReady])
  const { toasts } = Toast.useToastManager<{ traceId: string | undefined }>()
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      className={classes(styles['toast'], toast.type === 'bad' && styles['bad'])}
    >
      <Toast.Content className={styles['content']}>
        <Toast.Title />
        <Toast.Description />
        {toast.data?.traceId !== undefined && (
          <details>
            <summary>Details</summary>
            Trace id <code>{toast.data.traceId}</code>
          </details>
        )}
      </Toast.Content>
      <Toast.Close render={<IconButton label="Dismiss" icon={X} />} />
    </Toast.Root>
  ))
}
