import { useSyncExternalStore } from 'react'

/** The width for several columns, as in the style sheet. */
const wide = matchMedia('(width >= 60rem)')

function subscribe(listener: () => void): () => void {
  wide.addEventListener('change', listener)
  return () => wide.removeEventListener('change', listener)
}

export const useHasRoom = (): boolean => useSyncExternalStore(subscribe, () => wide.matches)
