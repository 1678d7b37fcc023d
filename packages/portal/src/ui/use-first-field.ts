import { type RefObject, useEffect, useRef } from 'react'

/** The focus goes to the first field of an element as soon as it is shown; where it has none, to what goes on. */
export function useFirstField<Element extends HTMLElement>(): RefObject<Element | null> {
  const element = useRef<Element>(null)
  useEffect(() => {
    const [field] = element.current?.querySelectorAll<HTMLElement>('input, select') ?? []
    const target = field ?? element.current?.querySelector<HTMLElement>('[type=submit]')
    target?.focus()
  }, [])
  return element
}
