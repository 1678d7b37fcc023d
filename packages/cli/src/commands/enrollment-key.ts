import type { Command } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { parseLabels, siteIdOf } from '../clusters.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import type { Column } from '../print/table.ts'
import { say, writeJson } from '../print/write.ts'
import { addCommand, addListCommand, collectValues, wholeNumber } from './add-command.ts'
import { sayPublicAddress } from './cluster.ts'

interface CreateOptions extends PrintOptions {
  maxUses: number
  expiresInDays: number
  site?: string
  label?: string[]
  type?: 'Hypervisor' | 'CloudLocal'
  nameTemplate?: string
  requireApproval?: true
}

const columns: Column<Schemas['EnrollmentKey']>[] = [
  { title: 'ID', cellValue: ({ id }) => id },
  { title: 'NAME', cellValue: ({ name }) => name, isFlexible: true },
  { title: 'USED', cellValue: ({ usedCount, maxUses }) => `${usedCount} of ${maxUses}` },
  { title: 'APPROVAL', cellValue: ({ requireApproval }) => (requireApproval ? 'required' : 'no') },
  { title: 'CLUSTER NAME', cellValue: ({ nameTemplate }) => nameTemplate, isFlexible: true },
  { title: 'EXPIRES', cellValue: ({ expiresAt }) => expiresAt, format: 'expiry' },
]

export function addEnrollmentKeyCommands(program: Command): void {
  const key = program.command('enrollment-key').description('keys with which many relays enroll')
  addListCommand(key, 'list', 'list enrollment keys', { listEnrollmentKeys: 'plat enrollment-key list' }).action(list)
  addCommand(key, 'create <name>', 'create a key and print it once, with the command for each machine', {
    createEnrollmentKey: [
      'plat enrollment-key create edge --max-uses 500 --label env=prod',
      'plat enrollment-key create lab --name-template lab-{hostname} --expires-in-days 1 --require-approval',
    ],
  })
    .option('--max-uses <n>', 'how many relays can enroll', wholeNumber(1, 100_000), 1)
    .option('--expires-in-days <days>', 'lifetime in days', wholeNumber(1, 365), 30)
    .option('--site <site>', 'name or id of the site of the new clusters')
    .option('--label <key=value>', 'label of the new clusters; repeatable', collectValues)
    .option('--type <type>', 'type of the new clusters: Hypervisor or CloudLocal')
    .option('--name-template <text>', 'name of the new clusters; default {hostname}')
    .option('--require-approval', 'new clusters receive no jobs until plat cluster approve')
    .action(create)
  addCommand(key, 'delete <id>', 'revoke a key', {
    deleteEnrollmentKey: 'plat enrollment-key delete ekey_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(async (id: string, { json }: PrintOptions) => {
    await expectNoBody(connect().DELETE('/api/v1/enrollment-keys/{id}', { params: { path: { id } } }))
    await (json ? writeJson({ id, deleted: true }) : say(`${id} revoked.`))
  })
}

async function list({ limit, all, ...options }: PrintOptions & Extent): Promise<void> {
  const api = connect()
  const read = (query: Paging) => unwrap(api.GET('/api/v1/enrollment-keys', { params: { query } }))
  await showList(options, await readList({ limit, ...(all && { all }) }, read), columns)
}

async function create(
  name: string,
  { maxUses, expiresInDays, site, label = [], ...rest }: CreateOptions,
): Promise<void> {
  const { type, nameTemplate, requireApproval, ...options } = rest
  const api = connect()
  const body = {
    name,
    maxUses,
    expiresAt: new Date(Date.now() + expiresInDays * 86_400_000 - 60_000).toISOString(),
    labels: parseLabels(label),
    ...(site !== undefined && { siteId: await siteIdOf(api, site) }),
    ...(type !== undefined && { type }),
    ...(nameTemplate !== undefined && { nameTemplate }),
    ...(requireApproval && { requireApproval }),
  }
  const createdKey = await unwrap(api.POST('/api/v1/enrollment-keys', { body }))
  await showOne(options, createdKey)
  if (options.json) return
  const count = createdKey.maxUses === 1 ? 'one machine' : `up to ${createdKey.maxUses} machines`
  say(`The key is shown once. Run relayCommand on ${count}.`)
  await sayPublicAddress(createdKey.relayCommand)
}
