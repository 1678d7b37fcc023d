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
  { title: 'NODE', cellValue: ({ name }) => name, isFlexible: 'middle' },
  { title: 'STATUS', cellValue: ({ status }) => status, format: 'state' },
  { title: 'OS', cellValue: ({ facts }) => facts?.osVersion ?? facts?.os, isFlexible: true },
  { title: 'KERNEL', cellValue: ({ facts }) => facts?.kernel, isFlexible: true, isWide: true },
  { title: 'ARCH', cellValue: ({ facts }) => facts?.arch },
  { title: 'CPUS', cellValue: ({ facts }) => facts?.cpus },
  { title: 'MEMORY', cellValue: ({ facts }) => formatGib(facts?.memoryBytes) },
  { title: 'FREE', cellValue: ({ facts }) => formatGib(facts?.rootDiskFreeBytes) },
  { title: 'SHELLS', cellValue: ({ facts }) => facts?.shells, isWide: true },
  { title: 'ID', cellValue: ({ id }) => id, isWide: true },
]
const columns: Column<Schemas['NodeSummary']>[] = [
  { title: 'CLUSTER', cellValue: ({ clusterName }) => clusterName, isFlexible: 'middle' },
  ...nodeColumns,
]

export function addNodeCommands(program: Command): void {
  const node = program.command('node').description('machines of all clusters')
  addListCommand(node, 'list', 'list nodes with their facts', {
    listNodes: ['plat node list', 'plat node list --os linux', `plat node list -l 'env=prod,!legacy' --search db`],
  })
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
