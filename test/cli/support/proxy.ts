import { startServer } from '../../support/http-server.ts'

export type Fault =
  | 'drop response'
  | { holdUntil: Promise<unknown> }
  | { status: number; headers?: Record<string, string>; body?: string }

export interface Proxy extends AsyncDisposable {
  url: string
  requests: string[]
  inject: (prefix: string, ...faults: Fault[]) => void
}

export async function startProxy(target: string): Promise<Proxy> {
  const requests: string[] = []
  const plannedFaults: { prefix: string; fault: Fault }[] = []
  const server = await startServer(async ({ method, url, headers, body }, outgoing) => {
    const line = `${method} ${url.pathname}${url.search}`
    requests.push(line)
    const index = plannedFaults.findIndex(({ prefix }) => line.startsWith(prefix))
    const fault = index < 0 ? undefined : plannedFaults.splice(index, 1)[0]?.fault
    if (typeof fault === 'object' && 'status' in fault) {
      return { ...fault, headers: { 'content-type': 'application/json', ...fault.headers } }
    }
    const { host: _h, connection: _c, 'content-length': _n, ...forwarded } = headers
    const response = await fetch(new URL(line.slice(method.length + 1), target), {
      method,
      headers: Object.entries(forwarded).map(([name, value]) => [name, String(value)] as [string, string]),
      ...(body.length > 0 && { body: new Uint8Array(body) }),
      redirect: 'manual',
    })
    // fetch has decoded the content.
    const decodedHeaders = new Headers(response.headers)
    for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) decodedHeaders.delete(name)
    const content = Buffer.from(await response.arrayBuffer())
    if (typeof fault === 'object') await fault.holdUntil
    if (fault === 'drop response') outgoing.destroy()
    else return { status: response.status, headers: Object.fromEntries(decodedHeaders), body: content }
    return undefined
  })
  return {
    url: server.url,
    requests,
    inject: (prefix, ...faults) => plannedFaults.push(...faults.map((fault) => ({ prefix, fault }))),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
