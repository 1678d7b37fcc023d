/** Whether an error is one of these AWS exceptions. By name, because two copies of an SDK have different classes. */
export const isAws = (error: unknown, ...names: string[]): boolean =>
  error instanceof Error && names.includes(error.name)
