import { type RefObject, useEffect, useRef, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { showErrorToast } from './toast.tsx'

const pauseMs = 250

/** The value after it has been stable for a moment, so that not every keystroke causes a request. */
export function useDebounced<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}

/** Focuses the first field of an element on mount, or its continue button. */
export function useFirstField<Element extends HTMLElement>(): RefObject<Element | null> {
  const element = useRef<Element>(null)
  useEffect(() => {
    const [field] = element.current?.querySelectorAll<HTMLElement>('input, select') ?? []
    const target = field ?? element.current?.querySelector<HTMLElement>('[type=submit]')
    target?.focus()
  }, [])
  return element
}

/**
 * A lazily loaded module and the function that loads it. A failure shows a toast and keeps the page; the next attempt
 * may succeed.
 */
export function useLazyPart<Part>(load: () => Promise<Part>, failure: string) {
  const [loaded, setLoaded] = useState<{ part: Part }>()
  const fetchPart = () =>
    void load().then(
      (part) => setLoaded({ part }),
      (cause: unknown) => showErrorToast(failure, ApiError.unreachable(cause)),
    )
  return [loaded?.part, fetchPart] as const
}
