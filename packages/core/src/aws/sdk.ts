/** Milliseconds per attempt. Without `throwOnRequestTimeout`, the SDK only logs a request that times out. */
export const awsTimeouts = { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true } as const

/**
 * `cacheMiddleware` saves about a third of the CPU time of a call: the SDK prepares each kind of command once.
 * Middleware that is added later has no effect until `destroy` is called.
 */
export const awsSettings = { requestHandler: awsTimeouts, cacheMiddleware: true } as const

interface AwsClient {
  config: { maxAttempts: () => Promise<number> }
  middlewareStack: {
    add(
      middleware: (
        next: unknown,
        context: { clientName?: string; commandName?: string },
      ) => (args: { input: object }) => Promise<{ output: any; response: object }>,
      options: { step: 'initialize'; priority: 'low'; name: string },
    ): void
    remove(name: string): boolean
  }
}

/** Adds a middleware that replaces serialization, signatures, HTTP and retries of a client. */
export type AwsTransport = (client: AwsClient) => void

/** A global variable, because each function of a release contains its own copy of this module. */
const transportKey = Symbol.for('platform.awsMiddleware')
const globals: { [transportKey]?: AwsTransport } & typeof globalThis = globalThis

/** Affects AWS clients that are created later. Only the one-machine platform and tests call this function. */
export function setAwsTransport(transport: AwsTransport): void {
  globals[transportKey] = transport
}

/** Applies the transport, if any, to a new client. */
export function withTransport<Client extends AwsClient>(client: Client): Client {
  // The SDK would copy each input and output for a logger that does nothing.
  client.middlewareStack.remove('loggerMiddleware')
  globals[transportKey]?.(client)
  return client
}

/** Compares names, because two copies of an SDK have different classes. */
export const isAws = (error: unknown, ...names: string[]): boolean =>
  error instanceof Error && names.includes(error.name)
