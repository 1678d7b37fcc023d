import { useEffect, useState } from 'react'

const settledMs = 250

/** A value as it was when it last stood still for a moment: nobody is asked for every letter. */
export function useDebounced<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settledMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
