/** Milliseconds per AWS request. Without `throwOnRequestTimeout`, the SDK only logs a request that times out. */
export const awsTimeouts = { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true } as const

/** Compares names, because two copies of an SDK have different classes. */
export const isAws = (error: unknown, ...names: string[]): boolean =>
  error instanceof Error && names.includes(error.name)
