import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { waitFor } from '../../support/wait-for.ts'
import { expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'

export const webhooksPath = '/api/v1/webhooks'

export interface ReceivedRequest {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export interface Receiver extends AsyncDisposable {
  url: string
  requests: ReceivedRequest[]
  respondWith: (status: number, headers?: Record<string, string>) => void
  hangingPaths: Set<string>
}

/** Listens on the first free `host:port`. Returns undefined if all are in use. */
export async function startReceiver(targets: readonly string[]): Promise<Receiver | undefined> {
  for (const target of targets) {
    const receiver = await listen(target).catch(() => undefined)
    if (receiver !== undefined) return receiver
  }
  return undefined
}

async function listen(target: string): Promise<Receiver> {
  const { hostname, port } = new URL(`http://${target}`)
  const requests: ReceivedRequest[] = []
  const hangingPaths = new Set<string>()
  let [status, headers]: [number, Record<string, string>] = [204, {}]
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request)
    const { url: path = '', headers: requestHeaders } = request
    requests.push({ path, headers: requestHeaders, body })
    if (!hangingPaths.has(path)) response.writeHead(status, headers).end()
  }
  const server = createServer((request, response) => void handle(request, response))
  server.listen(Number(port || 80), hostname.replace(/^\[|\]$/g, ''))
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://${hostname}:${typeof address === 'object' ? address?.port : port}`,
    requests,
    hangingPaths,
    respondWith: (nextStatus, nextHeaders = {}) => {
      ;[status, headers] = [nextStatus, nextHeaders]
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export interface WebhookTenant extends AsyncDisposable {
  platform: Platform
  admin: Client
  receiver: Receiver
  newWebhook: (path: string, events: string[]) => Promise<any>
}

/** Starts a receiver for webhooks of a separate organisation. Returns undefined if no allowed `host:port` is free. */
export async function startWebhookTenant(platform: Platform): Promise<WebhookTenant | undefined> {
  const receiver = await startReceiver(platform.options.receivers ?? [])
  if (receiver === undefined) return undefined
  const stack = new AsyncDisposableStack()
  stack.use(receiver)
  const tenantPlatform = platform.as(await platform.tenant)
  const admin = await tenantPlatform.admin
  const newWebhook = async (path: string, events: string[]) => {
    const webhook = expectStatus(await admin.post(webhooksPath, { url: receiver.url + path, events }), 201)
    // The next test uses the same port and must not receive these events.
    stack.defer(async () => void (await admin.delete(`${webhooksPath}/${webhook.id}`)))
    return webhook
  }
  return { platform: tenantPlatform, admin, receiver, newWebhook, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

export const waitForRequests = ({ requests }: Receiver, path: string, count: number): Promise<ReceivedRequest[]> =>
  waitFor(`${count} requests to ${path}`, async () => {
    const matches = requests.filter((request) => request.path === path)
    return matches.length >= count && matches
  })

export const eventsAt = ({ requests }: Receiver, path: string): any[] =>
  requests.filter((request) => request.path === path).map(({ body }) => JSON.parse(body))

export const waitForClusterEvent = (receiver: Receiver, path: string, clusterId: string): Promise<boolean> =>
  waitFor(`an event of ${clusterId} at ${path}`, async () =>
    eventsAt(receiver, path).some(({ data }) => data.clusterId === clusterId),
  )

export const waitForDelivery = (admin: Client, webhookId: string, matches: (newest: any) => boolean): Promise<any> =>
  waitFor(`a delivery of ${webhookId}`, async () => {
    const { items } = expectStatus(await admin.get(`${webhooksPath}/${webhookId}/deliveries`), 200)
    return items.length > 0 && matches(items[0]) && items[0]
  })
