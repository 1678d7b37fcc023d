import { type Command, Option } from 'commander'
import { unwrap, expectNoBody } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { type Extent, type Paging, readList } from '../api/pages.ts'
import { type Cluster, type ClusterFilter, findCluster, listClusters } from '../clusters.ts'
import { connect } from '../connect.ts'
import { confirm } from '../print/ask.ts'
import { type Shown, showList, showOne } from '../print/show.ts'
import { type Column } from '../print/table.ts'
import { say, write, writeJson } from '../print/write.ts'
import { addCommand, addListCommand } from './add-command.ts'

const types = ['Hypervisor', 'CloudLocal']
const statuses = ['Healthy', 'Degraded', 'Pending', 'Offline']

export const withClusterFilter = (command: Command): Command =>
  command
    .addOption(new Option('--status <status>', 'only clusters with this status').choices(statuses))
    .addOption(new Option('--type <type>', 'only clusters of this type').choices(types))

const columns: Column<Cluster>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'NAME', of: ({ name }) => name, isFlexible: true },
  { title: 'TYPE', of: ({ type }) => type },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'NODES', of: ({ nodeCount }) => nodeCount },
  { title: 'LAST SEEN', of: ({ lastSeenAt }) => lastSeenAt },
]

export function addClusterCommands(program: Command): void {
  const cluster = program.command('cluster').description('clusters and their relays')
  withClusterFilter(addListCommand(cluster, 'list', 'list clusters', ['plat cluster list --status Offline'])).action(
    async ({ limit, all, status, type, ...options }: Shown & Extent & ClusterFilter) =>
      showList(
        options,
        await listClusters(
          connect(),
          { limit, ...(all && { all }) },
          { ...(status && { status }), ...(type && { type }) },
        ),
        columns,
      ),
  )
  addCommand(cluster, 'get <cluster>', 'show a cluster with its nodes and relay').action(get)
  addCommand(cluster, 'register <name>', 'register a cluster; prints the command for its relay', [
    'plat cluster register berlin-1',
    'ssh node-1 "$(plat cluster register berlin-1)"',
  ])
    .addOption(new Option('--type <type>', 'cluster type').choices(types).default('Hypervisor'))
    .option('--site <id>', 'site of the cluster')
    .action(register)
  addListCommand(cluster, 'timeline <cluster>', 'show the events of a cluster, newest first').action(timeline)
  addCommand(cluster, 'rename <cluster> <name>', 'rename a cluster').action(rename)
  addCommand(cluster, 'delete <cluster>', 'remove a cluster and all its data')
    .option('--yes', 'skip the confirmation')
    .action(remove)
  addCommand(cluster, 'enrollment-token <cluster>', 'issue a new enrollment token; unused ones are revoked').action(
    issueToken,
  )
}

async function get(nameOrId: string, options: Shown): Promise<void> {
  const api = connect()
  const { id } = await findCluster(api, nameOrId)
  await showOne(options, await unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id } } })))
}

async function timeline(nameOrId: string, { limit, all, ...options }: Shown & Extent): Promise<void> {
  const api = connect()
  const { id } = await findCluster(api, nameOrId)
  const read = (query: Paging) => unwrap(api.GET('/api/v1/clusters/{id}/timeline', { params: { path: { id }, query } }))
  await showList(options, await readList({ limit, ...(all && { all }) }, read), [
    { title: 'AT', of: ({ at }) => at },
    { title: 'KIND', of: ({ kind }) => kind },
    { title: 'TITLE', of: ({ title }) => title, isFlexible: true },
    { title: 'DETAIL', of: ({ detail }) => detail, isFlexible: true },
    { title: 'ABOUT', of: ({ resource }) => resource },
  ])
}

interface Registration extends Shown {
  type: Cluster['type']
  site?: string
}

async function register(name: string, { type, site: siteId, json }: Registration): Promise<void> {
  const body = { name, type, ...(siteId !== undefined && { siteId }) }
  const cluster = await unwrap(connect().POST('/api/v1/clusters', { body }))
  if (json) return writeJson(cluster)
  say(`${cluster.id} registered. Run this within 24 hours on the machine that runs the scripts:`)
  await showRelayCommand(cluster)
}

async function rename(nameOrId: string, name: string, options: Shown): Promise<void> {
  const api = connect()
  const { id } = await findCluster(api, nameOrId)
  const call = api.PATCH('/api/v1/clusters/{id}', { params: { path: { id } }, body: { name } })
  await showOne(options, await unwrap(call))
}

async function remove(nameOrId: string, { json, yes }: Shown & { yes?: true }): Promise<void> {
  const api = connect()
  const { id, name } = await findCluster(api, nameOrId)
  await confirm(`Remove ${name} (${id}) and all its data?`, { ...(yes && { yes }) })
  await expectNoBody(api.DELETE('/api/v1/clusters/{id}', { params: { path: { id } } }))
  await (json ? writeJson({ id, deleted: true }) : say(`${name} removed.`))
}

async function issueToken(nameOrId: string, { json }: Shown): Promise<void> {
  const api = connect()
  const { id, name } = await findCluster(api, nameOrId)
  const path = '/api/v1/clusters/{id}/enrollment-token'
  const enrollment: Schemas['Enrollment'] = await unwrap(api.POST(path, { params: { path: { id } } }))
  if (json) return writeJson(enrollment)
  say(`The relay that enrolls with this token replaces the relay of ${name}. Valid once, for 24 hours:`)
  await showRelayCommand(enrollment)
}

/** The command uses the address of this request, which other machines may not reach. */
async function showRelayCommand({ relayCommand }: { relayCommand: string }): Promise<void> {
  await write(`${relayCommand}\n`)
  const { publicUrl } = await unwrap(connect().GET('/api/v1/portal/configuration'))
  if (publicUrl !== undefined && !relayCommand.includes(new URL(publicUrl).origin))
    say(`On a machine that cannot reach this address, use ${publicUrl} in both places instead.`)
}
