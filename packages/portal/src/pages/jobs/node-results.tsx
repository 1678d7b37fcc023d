import { Badge } from '../../ui/badge.tsx'
import { Card } from '../../ui/card.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import type { Schemas } from '../../api/client.ts'

type NodeResult = Schemas['NodeResult']

interface NodeResultsProps {
  nodes: readonly NodeResult[]
  nameOf: (nodeId: string) => string
}

/** Failed nodes first. */
export function NodeResults({ nodes, nameOf }: NodeResultsProps) {
  const columns: Column<NodeResult>[] = [
    { title: 'Node', cell: ({ nodeId }) => nameOf(nodeId) },
    { title: 'Exit code', cell: ({ exitCode }) => <ExitCode code={exitCode} />, isNarrow: true },
  ]
  const rows = nodes.toSorted((a, b) => Number(a.exitCode === 0) - Number(b.exitCode === 0)).slice(0, shown)
  return (
    <Card title="Nodes">
      <Table label="Results by node" columns={columns} rows={rows} keyOf={({ nodeId }) => nodeId} />
      {nodes.length > shown && <p>{nodes.length - shown} more are available through the API.</p>}
    </Card>
  )
}

const shown = 200

function ExitCode({ code }: { code: number | null }) {
  if (code === null) return <Badge tone="bad">no exit code</Badge>
  return <Badge tone={code === 0 ? 'good' : 'bad'}>{code}</Badge>
}
