import type { Command } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { parseSelectorOption } from '../clusters.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { say, writeJson } from '../print/write.ts'
import { addCommand, addListCommand, addTableCommand, collectValues } from './add-command.ts'

const path = '/api/v1/webhooks/{id}'
type Events = Schemas['WebhookCreation']['events']

export function addWebhookCommands(program: Command): void {
  const webhook = program.command('webhook').description('deliver events to your endpoints')
  addTableCommand(webhook, 'list', 'list webhooks', { listWebhooks: 'plat webhook list' }).action(
    async (options: PrintOptions) =>
      showList(options, await unwrap(connect().GET('/api/v1/webhooks')), [
        { title: 'ID', cellValue: ({ id }) => id },
        { title: 'URL', cellValue: ({ url }) => url, isFlexible: 'middle' },
        { title: 'EVENTS', cellValue: ({ events }) => events, isFlexible: true },
        { title: 'ENABLED', cellValue: ({ enabled }) => (enabled ? 'yes' : 'no') },
        { title: 'FAILURES', cellValue: ({ failureCount }) => failureCount },
        { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
      ]),
  )
  addCommand(webhook, 'create <url>', 'create a webhook; prints its secret once', {
    createWebhook: "plat webhook create https://hooks.example.com/platform --event 'platform.job.*'",
  })
    .requiredOption('--event <type>', 'event type, such as platform.job.failed or *; repeatable', collectValues)
    .option('-l, --selector <selector>', 'only events about clusters with these labels', parseSelectorOption)
    .action(
      async (
        url: string,
        { event: events, selector, ...options }: PrintOptions & { event: Events; selector?: string },
      ) => {
        const body = { url, events, ...(selector !== undefined && { selector }) }
        await showOne(options, await unwrap(connect().POST('/api/v1/webhooks', { body })))
      },
    )
  addCommand(webhook, 'rotate-secret <id>', 'replace the secret; prints the new one once', {
    rotateWebhookSecret: 'plat webhook rotate-secret hook_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, options: PrintOptions) =>
    showOne(options, await unwrap(connect().POST(`${path}/rotate-secret`, { params: { path: { id } } }))),
  )
  addCommand(webhook, 'enable <id>', 'enable a webhook').action(setEnabled(true))
  addCommand(webhook, 'disable <id>', 'disable a webhook', {
    changeWebhook: 'plat webhook disable hook_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(setEnabled(false))
  addCommand(webhook, 'test <id>', 'send a test event to a webhook', {
    testWebhook: 'plat webhook test hook_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, options: PrintOptions) =>
    showOne(options, await unwrap(connect().POST(`${path}/test`, { params: { path: { id } } }))),
  )
  addListCommand(webhook, 'deliveries <id>', 'list deliveries', {
    listDeliveries: 'plat webhook deliveries hook_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(listDeliveries)
  addCommand(webhook, 'redeliver <id> <delivery>', 'deliver an event again', {
    redeliver: 'plat webhook redeliver hook_01jd8w5k3zr9x2m4c7t6v0b1qa dlv_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, deliveryId: string, options: PrintOptions) => {
    const call = connect().POST(`${path}/deliveries/{deliveryId}/redeliver`, { params: { path: { id, deliveryId } } })
    await showOne(options, await unwrap(call))
  })
  addCommand(webhook, 'delete <id>', 'remove a webhook', {
    deleteWebhook: 'plat webhook delete hook_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, { json }: PrintOptions) => {
    await expectNoBody(connect().DELETE(path, { params: { path: { id } } }))
    await (json ? writeJson({ id, deleted: true }) : say(`${id} removed.`))
  })
}

const setEnabled = (isEnabled: boolean) => async (id: string, options: PrintOptions) =>
  showOne(options, await unwrap(connect().PATCH(path, { params: { path: { id } }, body: { enabled: isEnabled } })))

async function listDeliveries(id: string, { limit, all, ...options }: PrintOptions & Extent): Promise<void> {
  const api = connect()
  const read = (query: Paging) => unwrap(api.GET(`${path}/deliveries`, { params: { path: { id }, query } }))
  await showList(options, await readList({ limit, ...(all && { all }) }, read), [
    { title: 'ID', cellValue: (delivery) => delivery.id },
    { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
    { title: 'EVENT', cellValue: ({ eventType }) => eventType, isFlexible: true },
    { title: 'ATTEMPTS', cellValue: ({ attempts }) => attempts.length },
    {
      title: 'LAST RESPONSE',
      cellValue: ({ attempts }) => attempts.at(-1)?.statusCode ?? attempts.at(-1)?.error,
      isFlexible: true,
    },
    { title: 'NEXT ATTEMPT', cellValue: ({ nextAttemptAt }) => nextAttemptAt, format: 'expiry', isWide: true },
    { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
  ])
}
