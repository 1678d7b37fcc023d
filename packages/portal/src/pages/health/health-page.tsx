import { HeartPulse, RotateCw } from 'lucide-react'
import type { Schemas } from '../../api/client.ts'
import { Badge, StatusBadge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import { useReadiness } from './use-readiness.ts'

type Check = Schemas['HealthCheck']

export function HealthPage() {
  const query = useReadiness()
  const { data, dataUpdatedAt, isFetching, refetch } = query
  return (
    <Page
      title="Health"
      mark={data && <StatusBadge status={data.aggregate} />}
      lead={
        data && (
          <>
            {meanings[data.aggregate]} Checked <Time at={new Date(dataUpdatedAt).toISOString()} />, every ten seconds
            while this page is visible.
          </>
        )
      }
      actions={
        <Button icon={RotateCw} isBusy={isFetching} onClick={() => void refetch()}>
          Check now
        </Button>
      }
    >
      <Loaded query={query} what="the health">
        {({ checks }) => (
          <Card title="Checks">
            {checks.length > 0 ? (
              <Table label="Checks" columns={columns} rows={worstFirst(checks)} keyOf={keyOf} />
            ) : (
              <EmptyState icon={HeartPulse} title="No health checks">
                The platform responds but reports no checks.
              </EmptyState>
            )}
          </Card>
        )}
      </Loaded>
      <Card title="Tags">
        <DescriptionList items={tags} />
      </Card>
    </Page>
  )
}

const meanings: Record<Schemas['Readiness']['aggregate'], string> = {
  Healthy: 'All checks pass.',
  Degraded: 'The platform works with limitations.',
  Unhealthy: 'A critical check fails.',
}

const tags = [
  ['critical', 'Required. If it is Unhealthy, the platform is Unhealthy.'],
  ['degradable', 'Optional. If it fails, the platform is Degraded.'],
  ['informational', 'Shown for information only.'],
] as const

const rank: Record<Check['status'], number> = { Unhealthy: 0, Degraded: 1, Healthy: 2 }
const keyOf = ({ source, name }: Check) => `${source} ${name}`
/** Worst first; the platform's checks before those of modules. */
const worstFirst = (checks: readonly Check[]) =>
  checks.toSorted(
    (a, b) =>
      rank[a.status] - rank[b.status] ||
      Number(b.source === 'platform') - Number(a.source === 'platform') ||
      keyOf(a).localeCompare(keyOf(b)),
  )

const milliseconds = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'millisecond', maximumFractionDigits: 1 })

const columns = [
  { title: 'Status', isNarrow: true, cell: ({ status }: Check) => <StatusBadge status={status} /> },
  {
    title: 'Check',
    cell: ({ name, description }: Check) => (
      <div>
        <strong>{name}</strong>
        <div>{description}</div>
      </div>
    ),
  },
  { title: 'Source', cell: ({ source }: Check) => <code>{source}</code> },
  {
    title: 'Tags',
    cell: ({ tags: own }: Check) =>
      own.map((tag) => (
        <Badge key={tag} tone={tag === 'critical' ? 'busy' : 'quiet'}>
          {tag}
        </Badge>
      )),
  },
  { title: 'Took', isEnd: true, isNarrow: true, cell: ({ durationMs }: Check) => milliseconds.format(durationMs) },
  { title: 'Checked', isNarrow: true, cell: ({ checkedAt }: Check) => <Time at={checkedAt} /> },
]
