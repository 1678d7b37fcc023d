/** Returns the value of the `x-amzn-trace-id` header that API Gateway adds. */
export const amazonTrace = (traceId: string): string => `Root=1-${traceId.slice(0, 8)}-${traceId.slice(8)}`
