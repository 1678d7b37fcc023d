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

/** How the platform and its modules are, check by check. */
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
            {meanings[data.aggregate]} Looked <Time at={new Date(dataUpdatedAt).toISOString()} />, and every ten seconds
            while this page is in sight.
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
              <EmptyState icon={HeartPulse} title="There is no check">
                The platform answers, and says nothing else of itself.
              </EmptyState>
            )}
          </Card>
        )}
      </Loaded>
      <Card title="What the tags mean">
        <DescriptionList items={tags} />
      </Card>
    </Page>
  )
}

const meanings: Record<Schemas['Readiness']['aggregate'], string> = {
  Healthy: 'All checks that count are good.',
  Degraded: 'The platform serves, but something is not as it should be.',
  Unhealthy: 'Something that the platform needs does not work.',
}

const tags = [
  ['critical', 'The platform cannot serve without it: while it is Unhealthy, so is the whole platform.'],
  ['degradable', 'The platform serves without it, less well: it makes the whole platform Degraded at most.'],
  ['informational', 'It is told, and changes nothing.'],
] as const

const rank: Record<Check['status'], number> = { Unhealthy: 0, Degraded: 1, Healthy: 2 }
const keyOf = ({ source, name }: Check) => `${source} ${name}`
/** The worst first; of those that are alike the platform's own. */
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
