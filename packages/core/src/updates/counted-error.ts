/** Functions of a release and their host share no code: a global symbol is the same in both. */
const mark = Symbol.for('platform.tallied')

/** Marks an error as counted, so that the function's host does not count it again. */
export function markCounted(error: unknown): void {
  if (error instanceof Error) Reflect.set(error, mark, true)
}

/** Whether a function has counted the error. */
export const isCounted = (error: Error): boolean => Reflect.get(error, mark) === true
