import { type Command, Option } from 'commander'
import { unwrap } from '../api/unwrap.ts'
import type { Schemas } from '../api/client.ts'
import { type Extent, readList } from '../api/pages.ts'
import { connect } from '../connect.ts'
import { type PrintOptions, showList } from '../print/show.ts'
import type { Column } from '../print/table.ts'
import { addListCommand, bothOrders } from './add-command.ts'

interface Filter extends PrintOptions, Extent {
  selector?: string
  os?: string
  search?: string
  sort?: (typeof orders)[number]
}

const orders = bothOrders('name', 'os', 'arch', 'cpus', 'memoryBytes', 'rootDiskFreeBytes')

const formatGib = (bytes: number | undefined): string | undefined =>
  bytes === undefined ? undefined : `${Math.round(bytes / 2 ** 30)} GiB`

export const nodeColumns: Column<Pick<Schemas['NodeSummary'], 'id' | 'name' | 'status' | 'facts'>>[] = [
  { title: 'NODE', of: ({ name }) => name, isFlexible: 'middle' },
  { title: 'STATUS', of: ({ status }) => status, as: 'state' },
  { title: 'OS', of: ({ facts }) => facts?.osVersion ?? facts?.os, isFlexible: true },
  { title: 'KERNEL', of: ({ facts }) => facts?.kernel, isFlexible: true, isWide: true },
  { title: 'ARCH', of: ({ facts }) => facts?.arch },
  { title: 'CPUS', of: ({ facts }) => facts?.cpus },
  { title: 'MEMORY', of: ({ facts }) => formatGib(facts?.memoryBytes) },
  { title: 'FREE', of: ({ facts }) => formatGib(facts?.rootDiskFreeBytes) },
  { title: 'SHELLS', of: ({ facts }) => facts?.shells, isWide: true },
  { title: 'ID', of: ({ id }) => id, isWide: true },
]
const columns: Column<Schemas['NodeSummary']>[] = [
  { title: 'CLUSTER', of: ({ clusterName }) => clusterName, isFlexible: 'middle' },
  ...nodeColumns,
]

export function addNodeCommands(program: Command): void {
  const node = program.command('node').description('machines of all clusters')
  addListCommand(node, 'list', 'list nodes with their facts', [
    'plat node list --os linux',
    `plat node list -l 'env=prod,!legacy' --search db`,
  ])
    .option('-l, --selector <selector>', 'only nodes of clusters with these labels')
    .option('--os <name>', 'only nodes with this operating system, such as linux')
    .option('--search <text>', 'only nodes whose name contains this text')
    .addOption(new Option('--sort <field>', 'order; -name reverses it').choices(orders))
    .action(async ({ limit, all, selector, os, search, sort, ...options }: Filter) => {
      const filter = {
        ...(selector && { selector }),
        ...(os && { os }),
        ...(search && { search }),
        ...(sort && { sort }),
      }
      const nodes = await readList({ limit, ...(all && { all }) }, (paging) =>
        unwrap(connect().GET('/api/v1/nodes', { params: { query: { ...filter, ...paging } } })),
      )
      await showList(options, nodes, columns)
    })
}
