/** Timeouts of one AWS call. Without `throwOnRequestTimeout` the SDK only logs a late request. */
export const awsTimeouts = { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true } as const
