import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { parseSelectorOption } from '../clusters.ts'
import { connect, connectToFollow } from '../connect.ts'
import { CliError, exitCodes } from '../exit.ts'
import { confirm } from '../print/ask.ts'
import { Progress } from '../print/progress.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { cellOf, type Column } from '../print/table.ts'
import { countText } from '../print/text.ts'
import { say, write, writeJson } from '../print/write.ts'
import { addCommand, addListCommand, wholeNumber } from './add-command.ts'

type RelayUpdate = Schemas['RelayUpdate']

const columns: Column<RelayUpdate>[] = [
  { title: 'ID', cellValue: ({ id }) => id },
  { title: 'VERSION', cellValue: ({ version }) => version, isFlexible: 'middle' },
  { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  { title: 'DONE', cellValue: ({ counts, resolvedCount }) => `${counts.completed}/${resolvedCount}` },
  { title: 'PENDING', cellValue: ({ counts }) => counts.pending, isWide: true },
  { title: 'ROLLED BACK', cellValue: ({ counts }) => counts.rolledBack },
  { title: 'SKIPPED', cellValue: ({ counts }) => counts.skipped, isWide: true },
  { title: 'BY', cellValue: ({ createdBy }) => createdBy.username, isFlexible: 'middle', isWide: true },
  { title: 'CREATED', cellValue: ({ createdAt }) => createdAt, format: 'age' },
]

const clusterStatuses = ['Pending', 'Offered', 'Completed', 'RolledBack', 'Skipped'] as const

const clusterColumns: Column<Schemas['RelayUpdateCluster']>[] = [
  { title: 'ID', cellValue: ({ clusterId }) => clusterId, isWide: true },
  { title: 'NAME', cellValue: ({ clusterId, name }) => name || clusterId, isFlexible: true },
  { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  { title: 'REASON', cellValue: ({ reason }) => reason, isFlexible: true },
]

interface UpdateOptions extends PrintOptions {
  /** Commander does not require this option, because it would then require it for the subcommands too. */
  selector?: string
  canary?: number
  maxConcurrent?: number
  wait?: true
  yes?: true
}

export function addRelayCommands(program: Command): void {
  const relay = program.command('relay').description('relay updates')
  const update = addCommand(relay, 'update', 'update relays to the version of the platform, canaries first', {
    createRelayUpdate: [
      'plat relay update -l env=prod --canary 3 --max-concurrent 20',
      'plat relay update -l env=staging --wait',
    ],
  })
    .option('-l, --selector <selector>', 'required: clusters with these labels, such as env=prod', parseSelectorOption)
    .option('--canary <n>', 'relays that must complete the update before others start; default 1', wholeNumber(1, 100))
    .option('--max-concurrent <n>', 'relays that install it at the same time; default 50', wholeNumber(1, 500))
    .option('--yes', 'do not ask before an update of more than 10 clusters')
    .option('--wait', 'wait until it ends; exit with 1 if it did not complete on all relays')
    .action(start)
  addCommand(update, 'get <id>', 'show an update with its counts', {
    getRelayUpdate: 'plat relay update get rupd_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(get)
  addListCommand(update, 'clusters <id>', 'list the clusters of an update, with reasons', {
    listRelayUpdateClusters: 'plat relay update clusters rupd_01jd8w5k3zr9x2m4c7t6v0b1qa --status RolledBack',
  })
    .addOption(new Option('--status <status>', 'only clusters with this status').choices(clusterStatuses))
    .action(listClusters)
  addCommand(update, 'cancel <id>', 'stop offering the version to relays', {
    cancelRelayUpdate: 'plat relay update cancel rupd_01jd8w5k3zr9x2m4c7t6v0b1qa',
  }).action(cancel)
  addListCommand(update, 'list', 'list updates', { listRelayUpdates: 'plat relay update list' }).action(list)
}

async function list({ limit, all, ...options }: PrintOptions & Extent): Promise<void> {
  const api = connect()
  const read = (query: Paging) => unwrap(api.GET('/api/v1/relay-updates', { params: { query } }))
  await showList(options, await readList({ limit, ...(all && { all }) }, read), columns)
}

const read = (api: Api, id: string) => unwrap(api.GET('/api/v1/relay-updates/{id}', { params: { path: { id } } }))

const get = async (id: string, options: PrintOptions): Promise<void> => showOne(options, await read(connect(), id))

interface ClustersOptions extends PrintOptions, Extent {
  status?: (typeof clusterStatuses)[number]
}

async function listClusters(id: string, { limit, all, status, ...options }: ClustersOptions): Promise<void> {
  const api = connect()
  const readPage = (paging: Paging) => {
    const params = { path: { id }, query: { ...paging, ...(status !== undefined && { status }) } }
    return unwrap(api.GET('/api/v1/relay-updates/{id}/clusters', { params }))
  }
  await showList(options, await readList({ limit, ...(all && { all }) }, readPage), clusterColumns)
}

async function cancel(id: string, options: PrintOptions): Promise<void> {
  const cancelledUpdate = await unwrap(
    connect().POST('/api/v1/relay-updates/{id}/cancel', { params: { path: { id } } }),
  )
  await showOne(options, cancelledUpdate)
}

const maxUnconfirmedClusters = 10

async function start({ selector, canary, maxConcurrent, wait, yes, ...options }: UpdateOptions): Promise<void> {
  if (selector === undefined) throw new CliError('usage', 'Specify the clusters: --selector LABELS.')
  const api = wait ? connectToFollow() : connect()
  const target = { selector }
  const { resolvedCount } = await unwrap(api.POST('/api/v1/targets/resolve', { body: { target } }))
  const count = countText(resolvedCount, 'cluster')
  say(`${count} selected by ${selector}.`)
  if (resolvedCount > maxUnconfirmedClusters) await confirm(`Update the relays of ${count}?`, { ...(yes && { yes }) })
  const limits = { ...(canary !== undefined && { canary }), ...(maxConcurrent !== undefined && { maxConcurrent }) }
  const body = { target, expectedCount: resolvedCount, ...limits }
  const update = await unwrap(api.POST('/api/v1/relay-updates', { body }))
  if (wait) process.exitCode = await follow(api, update.id, options)
  else {
    await showOne(options, update)
    if (!options.json) say(`Next: plat relay update get ${update.id}`)
  }
}

const pauseMs = 2000

async function follow(api: Api, id: string, { json }: PrintOptions): Promise<number> {
  const progress = new Progress()
  for (;;) {
    const update = await read(api, id)
    const { pending, offered, completed, rolledBack, skipped } = update.counts
    if (update.status !== 'Running') {
      progress.clear()
      const countsText = `${completed} completed, ${rolledBack} rolled back, ${skipped} skipped, ${pending + offered} not updated`
      await (json ? writeJson(update) : write(`${id} ${update.status}: ${countsText}\n`))
      if (update.statusReason !== undefined) say(cellOf(update.statusReason))
      return update.status === 'Completed' && rolledBack === 0 ? exitCodes.ok : exitCodes.refused
    }
    const note = `${offered} installing, ${rolledBack} rolled back`
    progress.update({ total: update.resolvedCount, endedCount: completed + rolledBack + skipped, note })
    await sleep(pauseMs)
  }
}
