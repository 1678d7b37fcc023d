import { useSyncExternalStore } from 'react'

/** The width from which widgets stand beside each other: the same as in the style sheet. */
const wide = matchMedia('(width >= 60rem)')

function subscribe(listener: () => void): () => void {
  wide.addEventListener('change', listener)
  return () => wide.removeEventListener('change', listener)
}

/** Whether widgets stand beside each other. */
export const useHasRoom = (): boolean => useSyncExternalStore(subscribe, () => wide.matches)
