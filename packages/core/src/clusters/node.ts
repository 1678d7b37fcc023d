import type { ClusterStatus, Node } from '@platform/contract/cluster'
import * as z from 'zod'
import type { Item } from '../db/table.ts'
import { sha256 } from '../id.ts'
import { parseFacts } from './facts.ts'
import { nodeStatus } from './status.ts'

/** The nodes of a cluster are one JSON string, which is cheaper to store than thousands of small maps. */

const Nodes = z.array(z.object({ id: z.string(), name: z.string(), status: z.enum(['Online', 'Offline']) }))
export type StoredNode = z.infer<typeof Nodes>[number]

export const parseNodes = (item: Item | undefined): StoredNode[] =>
  item === undefined ? [] : Nodes.parse(JSON.parse(String(item['nodes'])))

export function nodesView(item: Item | undefined, clusterStatus: ClusterStatus): Node[] {
  const { facts } = parseFacts(item)
  return parseNodes(item).map(({ status, ...node }) => ({
    ...node,
    status: nodeStatus(status, clusterStatus),
    ...(facts[node.id] !== undefined && { facts: facts[node.id] }),
  }))
}

export const nodesItem = (nodes: readonly StoredNode[]): Item => ({ nodes: JSON.stringify(nodes) })

export const nodesHash = (nodes: readonly { id: string; status: string }[]): string =>
  sha256(JSON.stringify(nodes.map(({ id, status }) => `${id} ${status}`).toSorted((a, b) => (a < b ? -1 : 1)))).slice(
    0,
    16,
  )

export const countOnline = (nodes: readonly { status: string }[]): number =>
  nodes.filter(({ status }) => status === 'Online').length
