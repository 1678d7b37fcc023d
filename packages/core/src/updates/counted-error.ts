/** Functions of a release and what runs them share no code: a symbol that is looked up by name is the same to both. */
const mark = Symbol.for('platform.tallied')

/** Marks an error as counted by the function that fails with it: whoever runs that function does not count it again. */
export function markCounted(error: unknown): void {
  if (error instanceof Error) Reflect.set(error, mark, true)
}

/** Whether a function has counted an error itself. */
export const isCounted = (error: Error): boolean => Reflect.get(error, mark) === true
