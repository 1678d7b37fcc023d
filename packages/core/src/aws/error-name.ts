/** Whether an error is one of some exceptions of AWS. Classes of two copies of an SDK differ; names do not. */
export const isAws = (error: unknown, ...names: string[]): boolean =>
  error instanceof Error && names.includes(error.name)
