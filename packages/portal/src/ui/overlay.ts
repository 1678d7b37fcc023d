import { type ReactNode, useSyncExternalStore } from 'react'

export interface Overlay {
  show: (content: ReactNode) => void
  useContent: () => ReactNode
}

/** Creates a place where code outside of React components can show content. */
export function newOverlay(): Overlay {
  let shownContent: ReactNode
  const listeners = new Set<() => void>()
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    show: (content) => {
      shownContent = content
      for (const listener of listeners) listener()
    },
    useContent: () => useSyncExternalStore(subscribe, () => shownContent),
  }
}
