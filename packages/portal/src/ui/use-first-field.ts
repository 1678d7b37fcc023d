import { type RefObject, useEffect, useRef } from 'react'

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
