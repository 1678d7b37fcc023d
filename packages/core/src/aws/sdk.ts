/** Timeouts of one AWS call. Without `throwOnRequestTimeout` the SDK only logs a late request. */
export const awsTimeouts = { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true } as const

/** Whether an error is one of these AWS exceptions. By name, because two copies of an SDK have different classes. */
export const isAws = (error: unknown, ...names: string[]): boolean =>
  error instanceof Error && names.includes(error.name)
