import { ApiError } from '../api/api-error.ts'
import { newOverlay } from './overlay.ts'

export interface Message {
  title: string
  description?: string
  /** The trace id of a failed request, which is folded away. */
  traceId?: string | undefined
  type?: 'bad'
  priority?: 'high'
  timeout?: number
}

// Messages that arrive before the stack is loaded.
const queue: Message[] = []
let show: ((message: Message) => void) | undefined
const stack = newOverlay()

/**
 * Loads the toast stack early, so that it can show errors while the platform is down. If loading fails, messages are
 * kept until the next attempt.
 */
export function loadToasts(): void {
  void load().catch(() => undefined)
}

async function load(): Promise<void> {
  const { ToastStack } = await import('./toast-stack.tsx')
  stack.show(<ToastStack onReady={showQueued} />)
}

function enqueue(message: Message): void {
  if (show !== undefined) return show(message)
  queue.push(message)
  loadToasts()
}

export const showToast = (title: string, description?: string): void =>
  enqueue({ title, ...(description !== undefined && { description }) })

/** Shows an error for which the page has no other place. */
export function showErrorToast(title: string, error: unknown): void {
  const isApiError = error instanceof ApiError
  const description = isApiError ? error.message : 'Reload the page and try again.'
  const traceId = isApiError ? error.traceId : undefined
  enqueue({ title, description, traceId, type: 'bad', priority: 'high', timeout: 15_000 })
}

/** The place of the page for toasts, which is empty until the toast stack is loaded. Render it once. */
export const Toasts = () => stack.useContent()

function showQueued(showMessage: (message: Message) => void): void {
  show = showMessage
  for (const message of queue.splice(0)) showMessage(message)
}
