import { expectStatus } from './answer.ts'
import type { Client } from './client.ts'
import type { Platform } from './platform.ts'
import { type Received, type Receiver, receiverAt } from './receiver.ts'
import { waitFor } from '../../support/wait-for.ts'

export const webhooksPath = '/api/v1/webhooks'

/** An organisation with a webhook receiver. Disposing removes the webhooks and the receiver. */
export interface Deliveries extends AsyncDisposable {
  theirs: Platform
  admin: Client
  receiver: Receiver
  newWebhook: (path: string, events: string[]) => Promise<any>
}

/** Listens on an allowed port of this machine; undefined if none is free. */
export async function startDeliveries(platform: Platform): Promise<Deliveries | undefined> {
  const receiver = await receiverAt(platform.options.receivers ?? [])
  if (receiver === undefined) return undefined
  const stack = new AsyncDisposableStack()
  stack.use(receiver)
  const theirs = platform.as(await platform.tenant)
  const admin = await theirs.admin
  const newWebhook = async (path: string, events: string[]) => {
    const webhook = expectStatus(await admin.post(webhooksPath, { url: receiver.url + path, events }), 201)
    // The next test uses the same port and must not receive these events.
    stack.defer(async () => void (await admin.delete(`${webhooksPath}/${webhook.id}`)))
    return webhook
  }
  return { theirs, admin, receiver, newWebhook, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** Waits for this many requests to a path. */
export const came = ({ received }: Receiver, place: string, count: number): Promise<Received[]> =>
  waitFor(`${count} requests to ${place}`, async () => {
    const there = received.filter((request) => request.path === place)
    return there.length >= count && there
  })

export const eventsAt = ({ received }: Receiver, place: string): any[] =>
  received.filter((request) => request.path === place).map(({ body }) => JSON.parse(body))

export const heardOf = (receiver: Receiver, place: string, clusterId: string): Promise<boolean> =>
  waitFor(`${place} hears of ${clusterId}`, async () =>
    eventsAt(receiver, place).some(({ data }) => data.clusterId === clusterId),
  )

/** Waits until the newest delivery of a webhook matches. */
export const newestDelivery = (admin: Client, webhookId: string, isSo: (newest: any) => boolean): Promise<any> =>
  waitFor(`the delivery of ${webhookId}`, async () => {
    const { items } = expectStatus(await admin.get(`${webhooksPath}/${webhookId}/deliveries`), 200)
    return items.length > 0 && isSo(items[0]) && items[0]
  })
