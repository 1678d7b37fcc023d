import { answered } from './answer.ts'
import type { Client } from './client.ts'
import type { Journey, Platform } from './platform.ts'
import { type Received, type Receiver, receiverAt } from './receiver.ts'
import { until } from './until.ts'

export const webhooksPath = '/api/v1/webhooks'

/** What a journey about deliveries has: an organisation of its own, and a receiver that the platform may call. */
export interface Stage {
  platform: Platform
  theirs: Platform
  admin: Client
  receiver: Receiver
  /** Creates a webhook that leads to a path of the receiver. */
  newWebhook: (place: string, events: string[]) => Promise<any>
}

/** A journey about deliveries; skipped where the platform may call no port of this machine. */
export const onStage =
  (act: (stage: Stage) => Promise<void>): Journey =>
  async (platform, report) => {
    await using stack = new AsyncDisposableStack()
    const receiver = await receiverAt(platform.options.receivers ?? [])
    if (receiver === undefined) {
      return report.skip('PLAT_OUTBOUND_ALLOW names no port of this machine that is free')
    }
    stack.use(receiver)
    const theirs = platform.as(await platform.tenant)
    const admin = await theirs.admin
    const newWebhook = async (place: string, events: string[]) => {
      const webhook = answered(await admin.post(webhooksPath, { url: receiver.url + place, events }), 201)
      // The next journey has a receiver at the same port: it must not hear of this one's events.
      stack.defer(async () => void (await admin.delete(`${webhooksPath}/${webhook.id}`)))
      return webhook
    }
    await act({ platform, theirs, admin, receiver, newWebhook })
  }

/** What came to a path, once there is as much as there should be. */
export const came = ({ received }: Receiver, place: string, count: number): Promise<Received[]> =>
  until(`${count} requests to ${place}`, async () => {
    const there = received.filter((request) => request.path === place)
    return there.length >= count && there
  })

/** The events that have come to a path by now. */
export const eventsAt = ({ received }: Receiver, place: string): any[] =>
  received.filter((request) => request.path === place).map(({ body }) => JSON.parse(body))

/** Waits for an event about a cluster. */
export const heardOf = (receiver: Receiver, place: string, clusterId: string): Promise<boolean> =>
  until(`${place} hears of ${clusterId}`, async () =>
    eventsAt(receiver, place).some(({ data }) => data.clusterId === clusterId),
  )

/** The newest delivery of a webhook, once it is as it should be. */
export const newestDelivery = (admin: Client, webhookId: string, isSo: (newest: any) => boolean): Promise<any> =>
  until(`the delivery of ${webhookId}`, async () => {
    const { items } = answered(await admin.get(`${webhooksPath}/${webhookId}/deliveries`), 200)
    return items.length > 0 && isSo(items[0]) && items[0]
  })
