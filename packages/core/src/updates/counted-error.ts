/** A global symbol, because functions of a release and their host do not share code. */
const countedMark = Symbol.for('platform.tallied')

/** Marks an error as counted, so that the function's host does not count it again. */
export function markCounted(error: unknown): void {
  if (error instanceof Error) Reflect.set(error, countedMark, true)
}

/** Whether a function has counted the error. */
export const isCounted = (error: Error): boolean => Reflect.get(error, countedMark) === true
