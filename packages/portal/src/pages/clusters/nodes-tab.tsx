import { Network } from 'lucide-react'
import { StatusBadge } from '../../ui/badge.tsx'
import { EmptyState } from '../../ui/state.tsx'
import { type VirtualColumn, VirtualTable } from '../../ui/virtual-table.tsx'
import type { Cluster } from './cluster-queries.ts'

type Node = Cluster['nodes'][number]

const columns: VirtualColumn<Node>[] = [
  { title: 'Name', width: 'minmax(10rem, 2fr)', narrow: 'lead', cell: ({ name }) => name },
  { title: 'Status', width: '8rem', narrow: 'mark', cell: ({ status }) => <StatusBadge status={status} /> },
  { title: 'Id', width: 'minmax(16rem, 2fr)', cell: ({ id }) => <code>{id}</code> },
]

/** A cluster may have thousands of nodes. */
export const NodesTab = ({ nodes }: { nodes: readonly Node[] }) =>
  nodes.length === 0 ? (
    <EmptyState icon={Network} title="No nodes yet">
      Nodes are the machines that the relay runs scripts on. The relay reports them when it enrolls.
    </EmptyState>
  ) : (
    <VirtualTable
      label="Nodes"
      columns={columns}
      count={nodes.length}
      rowAt={(index) => nodes[index]}
      rowKey={({ id }) => id}
    />
  )
