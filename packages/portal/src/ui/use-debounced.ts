import { useEffect, useState } from 'react'

const settledMs = 250

/** The last value that did not change for a moment, so that not every letter causes a request. */
export function useDebounced<Value>(value: Value): Value {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), settledMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
