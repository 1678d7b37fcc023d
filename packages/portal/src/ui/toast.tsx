import { type ReactNode, useSyncExternalStore } from 'react'
import { ApiError } from '../api/api-error.ts'

/** What is told in passing. */
export interface Message {
  title: string
  description?: string
  type?: 'bad'
  priority?: 'high'
  timeout?: number
}

/** What came before anything could show it. */
const waiting: Message[] = []
let show: ((message: Message) => void) | undefined
let stack: ReactNode
const listeners = new Set<() => void>()

/**
 * Loads what shows messages: when there is one, or before, so that it is there when the platform is not. Where it does not come,
 * what is to be told waits for the next try.
 */
export function loadToasts(): void {
  void load().catch(() => undefined)
}

async function load(): Promise<void> {
  const { ToastStack } = await import('./toast-stack.tsx')
  stack ??= <ToastStack onReady={showWaiting} />
  for (const listener of listeners) listener()
}

function tell(message: Message): void {
  if (show !== undefined) return show(message)
  waiting.push(message)
  loadToasts()
}

/** Tells in passing that something was done. */
export const showToast = (title: string, description?: string): void =>
  tell({ title, ...(description !== undefined && { description }) })

/** Tells in passing what went wrong, where there is no place of its own for it. */
export function showErrorToast(title: string, error: unknown): void {
  const isTold = error instanceof ApiError
  const trace = isTold && error.traceId !== undefined ? ` (trace id ${error.traceId})` : ''
  const description = isTold ? error.message + trace : 'Reload the page and try again.'
  tell({ title, description, type: 'bad', priority: 'high', timeout: 15_000 })
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Where such messages appear: once on the whole page. */
export const Toasts = () => useSyncExternalStore(subscribe, () => stack)

function showWaiting(ready: (message: Message) => void): void {
  show = ready
  for (const message of waiting.splice(0)) ready(message)
}
