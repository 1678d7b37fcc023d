import { type RefObject, useEffect, useRef, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { showErrorToast } from './toast.tsx'

const pauseMs = 250

/** Returns the value once it has not changed for 250 ms, so that not every keystroke causes a request. */
export function useDebounced<Value>(value: Value): Value {
  const [settledValue, setSettledValue] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettledValue(value), pauseMs)
    return () => clearTimeout(timer)
  }, [value])
  return settledValue
}

/** Moves the focus to the first field of an element on mount, or to its submit button if it has no field. */
export function useFirstField<Element extends HTMLElement>(fields = 'input, select'): RefObject<Element | null> {
  const element = useRef<Element>(null)
  useEffect(() => {
    const [field] = element.current?.querySelectorAll<HTMLElement>(fields) ?? []
    const target = field ?? element.current?.querySelector<HTMLElement>('[type=submit]')
    target?.focus()
  }, [fields])
  return element
}

/**
 * Returns a component module that is loaded on demand, and the function that loads it. A failure shows a toast and
 * keeps the page; the function can be called again.
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

/** Scrolls an element into view. It is for the `ref` of an element that must be visible when it appears. */
export const scrollIntoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: 'nearest' })
