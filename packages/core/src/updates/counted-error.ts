/** A global symbol, because functions of a release and their host do not share code. */
const countedMark = Symbol.for('platform.tallied')

/** Prevents the function's host from counting the error again. */
export function markCounted(error: unknown): void {
  if (error instanceof Error) Reflect.set(error, countedMark, true)
}

export const isCounted = (error: Error): boolean => Reflect.get(error, countedMark) === true
