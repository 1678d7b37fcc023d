import { type Command, Option } from 'commander'
import { expectNoBody, unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import {
  type Cluster,
  type ClusterFilter,
  findCluster,
  listClusters,
  parseLabels,
  parseSelectorOption,
  selectedClusters,
  siteIdOf,
} from '../clusters.ts'
import { CliError } from '../exit.ts'
import { connect } from '../connect.ts'
import { batchesOf } from '../jobs/batch.ts'
import { confirm } from '../print/ask.ts'
import { type PrintOptions, showList, showOne } from '../print/show.ts'
import { cellOf, type Column } from '../print/table.ts'
import { countText } from '../print/text.ts'
import { say, write, writeJson } from '../print/write.ts'
import { addCommand, addListCommand, bothOrders, collectValues } from './add-command.ts'
import { nodeColumns } from './node.ts'

const orders = bothOrders(
  'name',
  'registeredAt',
  'status',
  'lastSeenAt',
  'nodeCount',
  'type',
  'site',
  'os',
  'arch',
  'relayVersion',
)
const types = ['Hypervisor', 'CloudLocal']
const statuses = ['Healthy', 'Degraded', 'Pending', 'Offline']

export const withClusterFilter = (command: Command): Command =>
  command
    .addOption(new Option('--status <status>', 'only clusters with this status').choices(statuses))
    .addOption(new Option('--type <type>', 'only clusters of this type').choices(types))

const columns: Column<Cluster>[] = [
  { title: 'ID', cellValue: ({ id }) => id, isWide: true },
  { title: 'NAME', cellValue: ({ name }) => name, isFlexible: 'middle' },
  { title: 'TYPE', cellValue: ({ type }) => type },
  { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  { title: 'NODES', cellValue: ({ nodeCount }) => nodeCount },
  { title: 'LAST SEEN', cellValue: ({ lastSeenAt }) => lastSeenAt, format: 'age' },
  { title: 'REGISTERED', cellValue: ({ registeredAt }) => registeredAt, format: 'age' },
]

export function addClusterCommands(program: Command): void {
  const cluster = program.command('cluster').description('clusters and their relays')
  withClusterFilter(
    addListCommand(cluster, 'list', 'list clusters', {
      listClusters: ["plat cluster list -l 'env=prod,!legacy'", 'plat cluster list --status Offline --show-labels'],
    }),
  )
    .option('-l, --selector <selector>', 'only clusters with these labels, such as env=prod', parseSelectorOption)
    .option('--show-labels', 'show the labels, also derived ones')
    .addOption(new Option('--sort <field>', 'order; -name reverses it').choices(orders))
    .action(list)
  addCommand(cluster, 'get <cluster>', 'show a cluster with its nodes and relay', {
    getCluster: 'plat cluster get berlin-1',
  }).action(get)
  addCommand(cluster, 'register <name>', 'register a cluster; prints the command for its relay', {
    registerCluster: [
      'plat cluster register berlin-1 --label env=prod',
      'ssh node-1 "$(plat cluster register berlin-1)"',
    ],
  })
    .addOption(new Option('--type <type>', 'cluster type').choices(types).default('Hypervisor'))
    .option('--site <site>', 'name or id of the site of the cluster')
    .option('--label <key=value>', 'label of the cluster; repeatable', collectValues)
    .action(register)
  addCommand(cluster, 'label [words...]', 'set labels (key=value) and remove labels (key-) of a cluster', {
    labelClusters: [
      'plat cluster label -l env=staging tier=web legacy-',
      'plat cluster label -l env=staging env=test --yes',
      'plat cluster label berlin-1 env=prod legacy-',
    ],
  })
    .option('-l, --selector <selector>', 'label all clusters with these labels, instead of one', parseSelectorOption)
    .option('--yes', 'with --selector: skip the confirmation')
    .action(label)
  addCommand(cluster, 'move [cluster]', 'move a cluster to a site', {
    moveClusters: [
      'plat cluster move berlin-1 --site Berlin',
      'plat cluster move -l env=prod --site Berlin --yes',
      'plat cluster move berlin-1 --no-site',
    ],
  })
    .option('-l, --selector <selector>', 'move all clusters with these labels, instead of one', parseSelectorOption)
    .option('--site <site>', 'name or id of the site')
    .option('--no-site', 'remove the clusters from their site')
    .option('--yes', 'with --selector: skip the confirmation')
    .action(move)
  addListCommand(cluster, 'timeline <cluster>', 'show the events of a cluster, newest first', {
    getClusterTimeline: 'plat cluster timeline berlin-1',
  }).action(showTimeline)
  addCommand(cluster, 'rename <cluster> <name>', 'rename a cluster', {
    updateCluster: 'plat cluster rename berlin-1 berlin-2',
  }).action(rename)
  addCommand(cluster, 'delete <cluster>', 'remove a cluster and all its data', {
    deleteCluster: 'plat cluster delete berlin-1',
  })
    .option('--yes', 'skip the confirmation')
    .action(remove)
  addCommand(cluster, 'approve <cluster>', 'approve a relay that enrolled with a key that requires approval', {
    approveCluster: 'plat cluster approve berlin-1',
  }).action(approve)
  addCommand(cluster, 'enrollment-token <cluster>', 'issue a new enrollment token; unused ones are revoked', {
    issueEnrollmentToken: 'plat cluster enrollment-token berlin-1',
  }).action(issueToken)
}

type ListOptions = PrintOptions & Extent & ClusterFilter & { showLabels?: true }

async function list({ limit, all, status, type, selector, sort, showLabels, ...options }: ListOptions): Promise<void> {
  const filter = {
    ...(status && { status }),
    ...(type && { type }),
    ...(selector !== undefined && { selector }),
    ...(sort !== undefined && { sort }),
  }
  const clusterList = await listClusters(connect(), { limit, ...(all && { all }) }, filter)
  await showList(options, clusterList, showLabels ? [...columns, labelColumn] : columns)
}

const labelColumn: Column<Cluster> = {
  title: 'LABELS',
  cellValue: ({ labels }) => Object.entries(labels).map(([key, value]) => `${key}=${value}`),
  isFlexible: true,
}

function labelsOf(words: readonly string[]): { set: Record<string, string>; remove: string[] } {
  const set: Record<string, string> = {}
  const removedKeys: string[] = []
  for (const word of words) {
    const equals = word.indexOf('=')
    if (equals > 0) set[word.slice(0, equals)] = word.slice(equals + 1)
    else if (word.endsWith('-') && word.length > 1) removedKeys.push(word.slice(0, -1))
    else throw new CliError('usage', `${cellOf(word)} is not a label. Use key=value to set it, or key- to remove it.`)
  }
  return { set, remove: removedKeys }
}

async function label(words: string[], options: PrintOptions & { selector?: string; yes?: true }): Promise<void> {
  const { selector } = options
  if (selector !== undefined) return labelSelected(selector, labelsOf(words), options)
  const [nameOrId = '', ...changes] = words
  const { set, remove } = labelsOf(changes)
  if (changes.length === 0) throw new CliError('usage', 'Specify a cluster and labels: plat cluster label NAME k=v')
  const api = connect()
  const { id } = await findCluster(api, nameOrId)
  const labels = { ...set, ...Object.fromEntries(remove.map((key) => [key, null])) }
  const call = api.PATCH('/api/v1/clusters/{id}', { params: { path: { id } }, body: { labels } })
  await showOne(options, await unwrap(call))
}

async function labelSelected(
  selector: string,
  change: ReturnType<typeof labelsOf>,
  options: PrintOptions & { yes?: true },
): Promise<void> {
  if (Object.keys(change.set).length + change.remove.length === 0)
    throw new CliError('usage', 'Specify labels: key=value to set one, or key- to remove one.')
  const api = connect()
  const clusterIds = await confirmClusters(api, selector, options, (count) => `Change the labels of ${count}?`)
  await changeInParts(options, clusterIds, (target) =>
    unwrap(api.POST('/api/v1/clusters/labels', { body: { target, ...change } })),
  )
}

async function confirmClusters(
  api: Api,
  selector: string,
  { yes }: { yes?: true },
  question: (count: string) => string,
): Promise<string[]> {
  const clusters = await selectedClusters(api, selector)
  if (clusters.length === 0) throw new CliError('refused', 'No matching clusters. See: plat cluster list --show-labels')
  await confirm(question(countText(clusters.length, 'cluster')), { ...(yes && { yes }) })
  return clusters.map(({ id }) => id)
}

/** Sends a change for at most 500 clusters per request, and prints the sum of the results. */
async function changeInParts(
  options: PrintOptions,
  allIds: string[],
  change: (target: { clusterIds: string[] }) => Promise<Schemas['BulkChangeResult']>,
): Promise<void> {
  const result = { resolvedCount: 0, changedCount: 0 }
  for (const clusterIds of batchesOf(allIds)) {
    const { resolvedCount, changedCount } = await change({ clusterIds })
    result.resolvedCount += resolvedCount
    result.changedCount += changedCount
  }
  await showOne(options, result)
}

interface MoveOptions extends PrintOptions {
  selector?: string
  /** False for `--no-site`. */
  site?: string | false
  yes?: true
}

async function move(nameOrId: string | undefined, { selector, site, ...options }: MoveOptions): Promise<void> {
  if (site === undefined) throw new CliError('usage', 'Specify --site NAME, or --no-site.')
  if ((nameOrId === undefined) === (selector === undefined))
    throw new CliError('usage', 'Specify a cluster or a selector: plat cluster move NAME --site SITE')
  const api = connect()
  const siteId = site === false ? null : await siteIdOf(api, site)
  const clusterIds =
    selector === undefined
      ? [(await findCluster(api, nameOrId ?? '')).id]
      : await confirmClusters(api, selector, options, (count) =>
          site === false ? `Remove ${count} from their sites?` : `Move ${count} to ${cellOf(site)}?`,
        )
  await changeInParts(options, clusterIds, (target) =>
    unwrap(api.POST('/api/v1/clusters/site', { body: { target, siteId } })),
  )
}

async function get(nameOrId: string, options: PrintOptions): Promise<void> {
  const api = connect()
  const { id } = await findCluster(api, nameOrId)
  const clusterDetail = await unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id } } }))
  if (options.json) return writeJson(clusterDetail)
  const { nodes, ...cluster } = clusterDetail
  await showOne(options, cluster)
  if (nodes.length === 0) return
  await write('\nnodes:\n')
  await showList(options, { items: nodes }, nodeColumns)
}

async function showTimeline(nameOrId: string, { limit, all, ...options }: PrintOptions & Extent): Promise<void> {
  const api = connect()
  const { id } = await findCluster(api, nameOrId)
  const read = (query: Paging) => unwrap(api.GET('/api/v1/clusters/{id}/timeline', { params: { path: { id }, query } }))
  await showList(options, await readList({ limit, ...(all && { all }) }, read), [
    { title: 'AT', cellValue: ({ at }) => at, format: 'age' },
    { title: 'ENDED', cellValue: ({ endedAt }) => endedAt, format: 'age', isWide: true },
    { title: 'KIND', cellValue: ({ kind }) => kind },
    { title: 'TITLE', cellValue: ({ title }) => title, isFlexible: true },
    { title: 'DETAIL', cellValue: ({ detail }) => detail, isFlexible: true },
    { title: 'ABOUT', cellValue: ({ resource }) => resource, isWide: true },
  ])
}

interface RegisterOptions extends PrintOptions {
  type: Cluster['type']
  site?: string
  label?: string[]
}

async function register(name: string, { type, site, label: words = [], json }: RegisterOptions): Promise<void> {
  const api = connect()
  const siteField = site === undefined ? {} : { siteId: await siteIdOf(api, site) }
  const cluster = await unwrap(
    api.POST('/api/v1/clusters', { body: { name, type, labels: parseLabels(words), ...siteField } }),
  )
  if (json) return writeJson(cluster)
  say(`${cluster.id} registered. Run this within 24 hours on the machine that runs the scripts:`)
  await showRelayCommand(cluster)
}

async function rename(nameOrId: string, name: string, options: PrintOptions): Promise<void> {
  const api = connect()
  const { id } = await findCluster(api, nameOrId)
  const call = api.PATCH('/api/v1/clusters/{id}', { params: { path: { id } }, body: { name } })
  await showOne(options, await unwrap(call))
}

async function remove(nameOrId: string, { json, yes }: PrintOptions & { yes?: true }): Promise<void> {
  const api = connect()
  const { id, name } = await findCluster(api, nameOrId)
  await confirm(`Remove ${name} (${id}) and all its data?`, { ...(yes && { yes }) })
  await expectNoBody(api.DELETE('/api/v1/clusters/{id}', { params: { path: { id } } }))
  await (json ? writeJson({ id, deleted: true }) : say(`${name} removed.`))
}

async function approve(nameOrId: string, { json }: PrintOptions): Promise<void> {
  const api = connect()
  const { id, name } = await findCluster(api, nameOrId)
  await expectNoBody(api.POST('/api/v1/clusters/{id}/approve', { params: { path: { id } } }))
  await (json ? writeJson({ id, approved: true }) : say(`${cellOf(name)} is approved.`))
}

async function issueToken(nameOrId: string, { json }: PrintOptions): Promise<void> {
  const api = connect()
  const { id, name } = await findCluster(api, nameOrId)
  const path = '/api/v1/clusters/{id}/enrollment-token'
  const enrollment: Schemas['Enrollment'] = await unwrap(api.POST(path, { params: { path: { id } } }))
  if (json) return writeJson(enrollment)
  say(`The relay that enrolls with this token replaces the relay of ${name}. Valid once, for 24 hours:`)
  await showRelayCommand(enrollment)
}

/** Prints a relay command, and the public URL of the platform if the command contains another address. */
async function showRelayCommand({ relayCommand }: { relayCommand: string }): Promise<void> {
  await write(`${relayCommand}\n`)
  await sayPublicAddress(relayCommand)
}

export async function sayPublicAddress(relayCommand: string): Promise<void> {
  const { publicUrl } = await unwrap(connect().GET('/api/v1/portal/configuration'))
  const origins = relayCommand.split(' ').flatMap((word) => URL.parse(word)?.origin ?? [])
  if (publicUrl !== undefined && !origins.includes(new URL(publicUrl).origin))
    say(`On a machine that cannot reach this address, use ${publicUrl} in both places instead.`)
}
