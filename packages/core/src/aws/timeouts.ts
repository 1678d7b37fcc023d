/**
 * How long one call to AWS may take. The SDK's handler only warns of a request that is late, unless it is told to give it up:
 * a caller waits for as many attempts as a client makes, and no longer.
 */
export const awsTimeouts = { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true } as const
