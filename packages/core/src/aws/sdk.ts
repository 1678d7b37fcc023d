/** Milliseconds per attempt. Without `throwOnRequestTimeout`, the SDK only logs a request that times out. */
export const awsTimeouts = { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true } as const

/** Settings of AWS clients that replace HTTP and signatures. */
export interface AwsTransport {
  requestHandler: {
    handle: (
      request: { headers: Record<string, string>; body: string | Uint8Array },
      options?: { abortSignal?: AbortSignal },
    ) => Promise<{ response: object }>
  }
  signer: { sign: <Request>(request: Request) => Promise<Request> }
}

/** A global variable, because each function of a release contains its own copy of this module. */
const transportKey = Symbol.for('platform.awsTransport')
const globals: { [transportKey]?: AwsTransport } & typeof globalThis = globalThis

/** Affects AWS clients that are created later. Only the one-machine platform and tests call this function. */
export function setAwsTransport(transport: AwsTransport): void {
  globals[transportKey] = transport
}

export const awsTransport = () => globals[transportKey] ?? { requestHandler: awsTimeouts }

/** Compares names, because two copies of an SDK have different classes. */
export const isAws = (error: unknown, ...names: string[]): boolean =>
  error instanceof Error && names.includes(error.name)
