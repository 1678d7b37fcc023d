import type { ServerResponse } from 'node:http'
import { startServer } from './http-server.ts'

interface InvocationError {
  errorType: string
  errorMessage: string
  header: string | undefined
}

interface Invocation extends PromiseWithResolvers<any> {
  event: unknown
}

export async function startRuntimeApi() {
  const invocations: Invocation[] = []
  const initError = Promise.withResolvers<InvocationError>()
  let [deliveredCount, pollCount] = [0, 0]
  let poll: ServerResponse | undefined
  const deliver = () => {
    const invocation = poll && invocations[deliveredCount]
    if (!invocation) return
    poll
      ?.setHeader('lambda-runtime-aws-request-id', `request-${deliveredCount++}`)
      .end(JSON.stringify(invocation.event))
    poll = undefined
  }
  const server = await startServer(({ url: { pathname }, headers, body }, outgoing) => {
    const [, id = '', part] = /\/runtime\/(?:invocation\/)?([^/]+)(?:\/(\w+))?$/.exec(pathname) ?? []
    if (id === 'next') {
      pollCount++
      poll = outgoing
      deliver()
      return undefined
    }
    const result = JSON.parse(body.toString())
    const error = { ...result, header: headers['lambda-runtime-function-error-type'] }
    const invocation = invocations[Number(id.split('-')[1])]
    if (id === 'init') initError.resolve(error)
    else if (part === 'response') invocation?.resolve(result)
    else invocation?.reject(Object.assign(new Error(error.errorMessage), error))
    return { status: 202, body: '{"status":"OK"}' }
  })
  return {
    address: server.host,
    initError: initError.promise,
    countPolls: () => pollCount,
    /** Delivers an event and returns the response. Rejects with the error that the function reports. */
    invoke: (event: unknown): Promise<any> => {
      const invocation = { event, ...Promise.withResolvers<any>() }
      invocations.push(invocation)
      deliver()
      return invocation.promise
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
